import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { embeddedModelFolder } from '../../src/core/models/manifest.js'
import type { Tensor } from '../../src/core/models/session/network.js'
import { defaultThreads, openSession } from '../../src/core/models/session/session.js'
import { openNetworkThread } from '../../src/core/models/session/threaded-network.js'
import { withWarmNetwork } from '../../src/core/models/session/warm-networks.js'
import { maskNetwork } from './onnx-graph.js'
import { maxDifference, noise } from './tracks.js'

const embedded = join(embeddedModelFolder, 'model.onnx')
let folder: string
let doubling: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stemwork-'))
  doubling = join(folder, 'doubling.onnx')
  await writeFile(
    doubling,
    maskNetwork(9, () => 2),
  )
})
afterAll(() => rm(folder, { recursive: true }))

const tensor = (dims: number[], data: Float32Array = new Float32Array(dims.reduce((a, b) => a * b))): Tensor => ({
  dims,
  data: Float32Array.from(data),
})

describe('a network in a thread', () => {
  it('tells its tensors, computes what a session in this thread computes and returns the lent memory', async () => {
    const thread = await openNetworkThread(embedded, { threads: 1 })
    const session = await openSession(embedded, { threads: 1 })
    expect(thread.inputs).toEqual(session.inputs)
    expect(thread.outputs).toEqual([{ name: 'vocals_spec', type: 'float32', shape: [1, 4, 'frames', 2049] }])
    const dims = [1, 4, 16, 2049]
    const input = noise(4 * 16 * 2049)
    const lent = tensor(dims, input)
    const fromThread = await thread.run({ mix_spec: lent }, { vocals_spec: tensor(dims) })
    expect(lent.data.length).toBe(0)
    expect(maxDifference(fromThread.feeds.mix_spec!.data, input)).toBe(0)
    const fromSession = await session.run({ mix_spec: tensor(dims, input) }, { vocals_spec: tensor(dims) })
    expect(fromThread.fetches.vocals_spec!.dims).toEqual(dims)
    expect(maxDifference(fromThread.fetches.vocals_spec!.data, fromSession.fetches.vocals_spec!.data)).toBe(0)
    expect(fromThread.fetches.vocals_spec!.data.some((value) => Math.abs(value) > 0.01)).toBe(true)
    await Promise.all([thread.close(), session.close()])
  })

  it('takes runs in order and leaves the event loop free meanwhile', async () => {
    const thread = await openNetworkThread(embedded, { threads: 1 })
    const dims = [1, 4, 640, 2049]
    const settled: number[] = []
    const start = (index: number) =>
      thread
        .run({ mix_spec: tensor(dims) }, { vocals_spec: tensor(dims) })
        .then(({ runMs }) => (settled.push(index), runMs))
    const runs = [start(0), start(1)]
    const histogram = monitorEventLoopDelay({ resolution: 5 })
    histogram.enable()
    const [first, second] = await Promise.all(runs)
    histogram.disable()
    expect(settled).toEqual([0, 1])
    expect(histogram.max / 1e6).toBeLessThan((first! + second!) / 2)
    await thread.close()
  })

  it('finishes its runs before it closes, and refuses later ones', async () => {
    const thread = await openNetworkThread(doubling, { threads: 1 })
    const run = thread.run({ mixture: tensor([1, 4, 1, 9], noise(36)) }, { estimate: tensor([1, 4, 1, 9]) })
    await thread.close()
    expect((await run).fetches.estimate!.data).toEqual(noise(36).map((value) => 2 * value))
    expect(thread.isOpen).toBe(false)
    await expect(thread.run({}, {})).rejects.toMatchObject({ code: 'INTERNAL_ERROR' })
  })

  it('survives a run that the network refuses', async () => {
    const thread = await openNetworkThread(doubling, { threads: 1 })
    await expect(thread.run({ wrong: tensor([1]) }, {})).rejects.toMatchObject({
      code: 'INTERNAL_ERROR',
      retryable: true,
    })
    const { fetches } = await thread.run(
      { mixture: tensor([1, 4, 1, 9], noise(36)) },
      { estimate: tensor([1, 4, 1, 9]) },
    )
    expect(fetches.estimate!.data[3]!).toBeCloseTo(2 * noise(36)[3]!)
    await thread.close()
  })

  it('says that a file is no network', async () => {
    const text = join(folder, 'text.onnx')
    await writeFile(text, '<html>not found</html>')
    await expect(openNetworkThread(text)).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
      message: expect.stringContaining('ONNX'),
    })
    await expect(openNetworkThread(join(folder, 'absent.onnx'))).rejects.toMatchObject({ code: 'INVALID_OPTIONS' })
  })

  it('asks for onnxruntime-node where it is not installed', async () => {
    const elsewhere = join(folder, 'elsewhere')
    const core = fileURLToPath(new URL('../../dist/core/', import.meta.url))
    for (const path of ['engine/errors.js', 'models/session'])
      await cp(join(core, path), join(elsewhere, path), { recursive: true })
    await writeFile(join(elsewhere, 'package.json'), '{"type":"module"}')
    const { openNetworkThread: open }: { openNetworkThread: typeof openNetworkThread } = await import(
      pathToFileURL(join(elsewhere, 'models/session/threaded-network.js')).href
    )
    await expect(open(doubling)).rejects.toMatchObject({
      code: 'MISSING_DEPENDENCY',
      message: expect.stringContaining('npm install onnxruntime-node'),
    })
  })

  it('uses one processor less than there are by default', () => {
    expect(defaultThreads()).toBe(Math.max(1, availableParallelism() - 1))
  })
})

describe('an execution provider', () => {
  it.each(['cuda', 'coreml', 'dml'] as const)(
    'falls back from %s to the CPU if it is not available, and the network says so',
    async (provider) => {
      const thread = await openNetworkThread(embedded, { threads: 1, provider })
      // Whether CUDA is there depends on the machine; the others belong to one system each.
      const isPossible = { cuda: true, coreml: process.platform === 'darwin', dml: process.platform === 'win32' }[
        provider
      ]
      if (!isPossible || thread.fallback)
        expect(thread.fallback).toEqual({ wanted: provider, reason: expect.stringMatching(/./) })
      expect(thread.inputs[0]!.name).toBe('mix_spec')
      await thread.close()
    },
  )

  it('is the processor by default, which is no fallback', async () => {
    const thread = await openNetworkThread(embedded, { threads: 1 })
    expect(thread.fallback).toBeUndefined()
    await thread.close()
  })
})

describe('warm networks', () => {
  it('are shared by path and threads, also by simultaneous users', async () => {
    const seen = await Promise.all(
      [1, 2].map(() => withWarmNetwork(doubling, { threads: 1 }, async (network) => network)),
    )
    expect(seen[0]).toBe(seen[1])
    expect(await withWarmNetwork(doubling, { threads: 2 }, async (network) => network)).not.toBe(seen[0])
    expect(seen[0]!.isOpen).toBe(true)
  })

  it('are closed above the memory limit, those not used for longest first, but never under a user', async () => {
    const paths = await Promise.all(
      [0, 1, 2, 3].map(async (index) => {
        const path = join(folder, `network-${index}.onnx`)
        await writeFile(path, maskNetwork(9))
        return path
      }),
    )
    const openOf = async (maxWarmBytes: number) =>
      withWarmNetwork(paths[0]!, { threads: 1 }, async (held) => {
        const others = []
        for (const path of paths.slice(1))
          others.push(await withWarmNetwork(path, { threads: 1, maxWarmBytes }, async (network) => network))
        return [held, ...others].map(({ isOpen }) => isOpen)
      })
    expect(await openOf(Number.MAX_SAFE_INTEGER)).toEqual([true, true, true, true])
    expect(await openOf(1)).toEqual([true, false, false, true])
  })

  it('are loaded again after a failed load', async () => {
    const path = join(folder, 'later.onnx')
    await expect(withWarmNetwork(path, { threads: 1 }, async () => undefined)).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
    })
    await writeFile(path, maskNetwork(9))
    await withWarmNetwork(path, { threads: 1 }, async (network) => expect(network.isOpen).toBe(true))
  })
})
