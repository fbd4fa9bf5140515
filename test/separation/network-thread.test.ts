import { cp, truncate, writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { embeddedModelFolder } from '../../src/core/models/load-model.js'
import type { Tensor } from '../../src/core/models/session/network.js'
import { installCommand } from '../../src/core/models/session/runtime.js'
import { defaultThreads, openSession } from '../../src/core/models/session/session.js'
import { openNetworkThread } from '../../src/core/models/session/threaded-network.js'
import { withWarmNetwork } from '../../src/core/models/session/warm-networks.js'
import { gainNetwork } from './onnx-graph.js'
import { decibelsAlike, maxDifference, noise } from './tracks.js'
import { temporaryFolder } from '../temporary-folder.js'

const embedded = join(embeddedModelFolder, 'model.onnx')
const folder = temporaryFolder()
let doubling: string
beforeAll(async () => {
  doubling = join(folder, 'doubling.onnx')
  await writeFile(doubling, gainNetwork(2))
})

/** Band powers of frames that resemble a song: falling steeply from low to high. */
const powers = (frames: number) => noise(4 * frames * 254).map((value, i) => value ** 2 * 10 ** (-(i % 254) / 50))

const tensor = (dims: number[], data: Float32Array = new Float32Array(dims.reduce((a, b) => a * b))): Tensor => ({
  dims,
  data: Float32Array.from(data),
})

/** Opens a thread from a copy of the code, in a folder without onnxruntime-node. */
async function openElsewhere(): Promise<typeof openNetworkThread> {
  const elsewhere = join(folder, 'elsewhere')
  const root = fileURLToPath(new URL('../../', import.meta.url))
  const core = 'build/core'
  for (const path of [
    'package.json',
    `${core}/engine/errors.js`,
    `${core}/engine/package-files.js`,
    `${core}/models/session`,
    'dist/core/models/session/ort-wasm-simd-threaded.mjs',
    'dist/browser/ort-wasm-simd-threaded.wasm',
  ])
    await cp(join(root, path), join(elsewhere, path), { recursive: true })
  const module = pathToFileURL(join(elsewhere, core, 'models/session/threaded-network.js')).href
  return ((await import(module)) as { openNetworkThread: typeof openNetworkThread }).openNetworkThread
}

describe.each(['native', 'wasm'] as const)('a network in a thread: %s', (runtime) => {
  it('reports its tensors, computes the same as a session in this thread and returns the lent memory', async () => {
    const thread = await openNetworkThread(embedded, { threads: 1, runtime })
    const session = await openSession(embedded, { threads: 1, runtime })
    expect(thread.runtime).toBe(runtime)
    expect(thread.inputs).toEqual(session.inputs)
    expect(thread.outputs).toEqual([{ name: 'masks', type: 'float32', shape: [1, 2, 'frames', 254] }])
    const dims = [1, 4, 16, 254]
    const [fetched, input] = [[1, 2, 16, 254], powers(16)]
    const lent = tensor(dims, input)
    const fromThread = await thread.run({ powers: lent }, { masks: tensor(fetched) })
    expect(lent.data.length).toBe(0)
    expect(maxDifference(fromThread.feeds.powers!.data, input)).toBe(0)
    const fromSession = await session.run({ powers: tensor(dims, input) }, { masks: tensor(fetched) })
    expect(fromThread.fetches.masks!.dims).toEqual(fetched)
    expect(maxDifference(fromThread.fetches.masks!.data, fromSession.fetches.masks!.data)).toBe(0)
    expect(fromThread.fetches.masks!.data.some((value) => Math.abs(value) > 0.01)).toBe(true)
    await Promise.all([thread.close(), session.close()])
  })

  it('takes runs in order and leaves the event loop free meanwhile', async () => {
    const thread = await openNetworkThread(embedded, { threads: 1, runtime })
    // About a second of work for each of the two.
    const frames = runtime === 'wasm' ? 512 : 2560
    const settled: number[] = []
    const start = (index: number) =>
      thread
        .run({ powers: tensor([1, 4, frames, 254]) }, { masks: tensor([1, 2, frames, 254]) })
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
    const thread = await openNetworkThread(doubling, { threads: 1, runtime })
    const run = thread.run({ mixture: tensor([1, 4, 1, 9], noise(36)) }, { estimate: tensor([1, 4, 1, 9]) })
    await thread.close()
    expect((await run).fetches.estimate!.data).toEqual(noise(36).map((value) => 2 * value))
    expect(thread.isOpen).toBe(false)
    await expect(thread.run({}, {})).rejects.toMatchObject({ code: 'INTERNAL_ERROR' })
  })

  it('survives a run that the network refuses', async () => {
    const thread = await openNetworkThread(doubling, { threads: 1, runtime })
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

  it('says that a file is not a network', async () => {
    const text = join(folder, 'text.onnx')
    await writeFile(text, '<html>not found</html>')
    await expect(openNetworkThread(text, { runtime })).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
      message: expect.stringContaining('ONNX'),
    })
    await expect(openNetworkThread(join(folder, 'absent.onnx'), { runtime })).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
    })
  })
})

describe('a runtime', () => {
  it('is the native library if it is installed, or else WebAssembly, which says how to get the library', async () => {
    const native = await openNetworkThread(doubling, { threads: 1, runtime: 'auto' })
    expect([native.runtime, native.runtimeHint]).toEqual(['native', undefined])
    await native.close()

    const open = await openElsewhere()
    const wasm = await open(doubling, { threads: 1, runtime: 'auto' })
    expect(wasm).toMatchObject({ runtime: 'wasm', runtimeHint: expect.stringContaining(installCommand) })
    const { fetches } = await wasm.run({ mixture: tensor([1, 4, 1, 9], noise(36)) }, { estimate: tensor([1, 4, 1, 9]) })
    expect(fetches.estimate!.data).toEqual(noise(36).map((value) => 2 * value))
    await wasm.close()
    await expect(open(doubling, { runtime: 'native' })).rejects.toMatchObject({
      code: 'MISSING_DEPENDENCY',
      message: expect.stringContaining(installCommand),
    })
  })

  it('can be chosen by an environment variable', async () => {
    vi.stubEnv('STEMWORK_RUNTIME', 'wasm')
    const chosen = await openNetworkThread(doubling, { threads: 1 })
    expect([chosen.runtime, chosen.runtimeHint]).toEqual(['wasm', undefined])
    await chosen.close()
    vi.stubEnv('STEMWORK_RUNTIME', 'fast')
    await expect(openNetworkThread(doubling)).rejects.toMatchObject({
      code: 'INVALID_OPTIONS',
      message: 'STEMWORK_RUNTIME must be one of auto, native, wasm, not "fast".',
    })
    vi.unstubAllEnvs()
  })

  it('of WebAssembly computes the same on several threads', async () => {
    const [one, three] = await Promise.all(
      [1, 3].map(async (threads) => {
        const thread = await openNetworkThread(embedded, { threads, runtime: 'wasm' })
        const feeds = { powers: tensor([1, 4, 64, 254], powers(64)) }
        const { fetches } = await thread.run(feeds, { masks: tensor([1, 2, 64, 254]) })
        await thread.close()
        return fetches.masks!.data
      }),
    )
    expect(decibelsAlike(three!, one!)).toBeGreaterThan(100)
  })

  it('of WebAssembly refuses a file that its memory cannot hold before it reads it', async () => {
    const path = join(folder, 'large.onnx')
    await writeFile(path, '')
    await truncate(path, 1.4e9)
    await expect(openNetworkThread(path, { runtime: 'wasm' })).rejects.toMatchObject({
      code: 'MISSING_DEPENDENCY',
      message: expect.stringMatching(/1400 MB .* 4 GB .*npm install onnxruntime-node/),
    })
  })

  it('uses all processors but one by default', () => {
    expect(defaultThreads()).toBe(Math.max(1, availableParallelism() - 1))
  })
})

describe('an execution provider', () => {
  it.each(['cuda', 'coreml', 'dml'] as const)(
    'falls back from %s to the CPU if it is not available, and the network says so',
    async (provider) => {
      const thread = await openNetworkThread(embedded, { threads: 1, provider })
      // Whether CUDA is available depends on the machine; the other providers belong to one system each.
      const isPossible = { cuda: true, coreml: process.platform === 'darwin', dml: process.platform === 'win32' }[
        provider
      ]
      if (!isPossible || thread.fallback)
        expect(thread.fallback).toEqual({ wanted: provider, reason: expect.stringMatching(/./) })
      expect(thread.inputs[0]!.name).toBe('powers')
      await thread.close()
    },
  )

  it('is the CPU by default, which is not a fallback', async () => {
    const thread = await openNetworkThread(embedded, { threads: 1 })
    expect(thread.fallback).toBeUndefined()
    await thread.close()
  })
})

describe('warm networks', () => {
  it('are shared by path and threads, even by simultaneous users', async () => {
    const seen = await Promise.all(
      [1, 2].map(() => withWarmNetwork(doubling, { threads: 1 }, async (network) => network)),
    )
    expect(seen[0]).toBe(seen[1])
    expect(await withWarmNetwork(doubling, { threads: 2 }, async (network) => network)).not.toBe(seen[0])
    expect(seen[0]!.isOpen).toBe(true)
  })

  it('are closed above the memory limit, least recently used first, but never while in use', async () => {
    const paths = await Promise.all(
      [0, 1, 2, 3].map(async (index) => {
        const path = join(folder, `network-${index}.onnx`)
        await writeFile(path, gainNetwork())
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
    await writeFile(path, gainNetwork())
    await withWarmNetwork(path, { threads: 1 }, async (network) => expect(network.isOpen).toBe(true))
  })
})
