import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { memoryBlobs, memoryJobs } from '../../../src/adapters/memory.js'
import { StemworkError } from '../../../src/core/engine/errors.js'
import type { JobChange } from '../../../src/core/engine/job/transitions.js'
import type { BlobStore } from '../../../src/core/engine/ports/blob-store.js'
import type { JobStore } from '../../../src/core/engine/ports/job-store.js'
import type { WorkOrder } from '../../../src/core/engine/ports/runner.js'
import { inlineRunner } from '../../../src/core/engine/runner/inline-runner.js'
import type { StageContext, Workflow } from '../../../src/core/engine/workflow/workflow.js'
import { loopback } from '../../fetch/loopback-server.js'
import { gate, keys, sharedBlobs, stepsWorkflow, testEngine, textWorkflow } from '../harness.js'
import { never } from '../notified.js'

const away = new StemworkError('STORE_UNAVAILABLE', 'no store', { retryable: true })
const checkpoints = { afterMs: 0, everyMs: 1 }
const aborted = (signal: AbortSignal | undefined) =>
  new Promise<never>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason as Error)))
const withDownload = (workflow: Workflow): Workflow => ({
  ...workflow,
  inputs: ['inputUrl'],
  params: z.object({ inputUrl: z.string() }),
})
const onceEach = (workflow: Workflow): Workflow => ({ ...workflow, policy: { maxAttempts: 1 } })

async function keepOne({ checkpoint, directory }: StageContext): Promise<void> {
  while (!checkpoint.isDue()) await new Promise((resolve) => setTimeout(resolve, 1))
  await writeFile(join(directory, 'part'), 'la')
  await checkpoint.keep(join(directory, 'part'))
}

test('a job of a workflow that its worker does not have fails with a message', async () => {
  const jobs = memoryJobs()
  const { submit } = testEngine(textWorkflow(), {}, { jobs })
  const { engine } = testEngine(
    textWorkflow(() => {}, 'test/other'),
    {},
    { jobs },
  )
  expect(await engine.run((await submit()).id)).toMatchObject({
    status: 'FAILED',
    failure: expect.stringContaining('no workflow'),
  })
  await engine.close()
})

test('the order of stages contains no steps, even if work is kept', async () => {
  const orders: WorkOrder[] = []
  const workflow = textWorkflow()
  const inline = inlineRunner({ resolve: () => workflow })
  const runner: typeof inline = { ...inline, run: (order, options) => (orders.push(order), inline.run(order, options)) }
  const { engine, submit } = testEngine(workflow, { checkpoints }, { runner, blobs: sharedBlobs() })
  expect(await engine.run((await submit()).id)).toMatchObject({ status: 'SUCCEEDED' })
  expect(orders).toMatchObject([{ steps: undefined, checkpoint: { parts: [] } }])
  await engine.close()
})

describe('work that is kept', () => {
  test('is reported to the store with the next heartbeat, which resets the count of attempts', async () => {
    const told = gate()
    const memory = memoryJobs()
    const apply: JobStore['apply'] = async (id, change) => {
      if (change.kind === 'heartbeat' && change.kept) told.open()
      return memory.apply(id, change)
    }
    const workflow = textWorkflow(async (context) => (await keepOne(context), await told.opened))
    const settings = { checkpoints, limits: { jobTimeoutMs: 5000 } }
    const { engine, submit } = testEngine(workflow, settings, { jobs: { ...memory, apply }, blobs: sharedBlobs() })
    expect(await engine.run((await submit()).id)).toMatchObject({ status: 'SUCCEEDED' })
    await engine.close()
  })

  test('but not stored by the end of the run is discarded, and leaves nothing', async () => {
    const memory = memoryBlobs()
    const storing = gate()
    let signal: AbortSignal | undefined
    const put: BlobStore['put'] = async (key, body, options) => {
      if (!key.startsWith('checkpoints/')) return memory.put(key, body, options)
      signal = options?.signal
      storing.open()
      return aborted(signal)
    }
    const blobs = { ...memory, traits: { scope: 'shared' as const }, putFile: undefined, put }
    const workflow = textWorkflow(async (context) => (await keepOne(context), await storing.opened))
    const { engine, submit } = testEngine(workflow, { checkpoints }, { blobs })
    expect(await engine.run((await submit()).id)).toMatchObject({ status: 'SUCCEEDED' })
    expect(signal?.aborted).toBe(true)
    expect(await keys(memory, ['checkpoints/'])).toEqual([])
    await engine.close()
  })

  test('includes the download of a waiting job', async () => {
    const server = await loopback((_, response) => response.end('la'))
    const workflow = withDownload(stepsWorkflow(({ step }) => step.sleep('pause', 1)))
    const { engine } = testEngine(workflow, { fetch: server.policy }, { blobs: sharedBlobs() })
    const params = { inputUrl: `${server.url}song.mp3` }
    const { job } = await engine.submit({ app: 'app', workflow: workflow.id, params })
    expect(await engine.run(job.id)).toMatchObject({ status: 'SUCCEEDED', token: 2 })
    expect(server.requests).toHaveLength(1)
    await engine.close()
  })
})

describe('a download', () => {
  /** A worker with one slot for slow inputs, and a server that ends its first answer when the test says so. */
  async function slowly() {
    const finish = gate()
    const server = await loopback(async (_, response) => {
      response.write(Buffer.alloc(1000))
      if (server.requests.length === 1) await finish.opened
      response.end('la')
    })
    const workflow = withDownload(textWorkflow())
    const inputs = { slowInputs: 1, slowInputsPerApplication: 1, minBytesPerSecond: 1 }
    const settings = { fetch: server.policy, inputs, dispatch: { concurrency: 2, ...never } }
    const { engine, until } = testEngine(workflow, settings)
    const submit = async (app: string) => {
      const params = { inputUrl: `${server.url}song.mp3` }
      return (await engine.submit({ app, workflow: workflow.id, params })).job
    }
    await engine.start()
    const { id } = await submit('slow')
    await expect.poll(() => server.requests.length).toBe(1)
    // By then the fetch has its slot.
    await new Promise((resolve) => setTimeout(resolve, 150))
    return { engine, until, submit, id, finish, server }
  }

  test('that has to wait for its slot starts again later, which does not count as an attempt', async () => {
    const { engine, submit, until, finish, server } = await slowly()
    server.requests.length = 0
    const another = await submit('slow')
    const other = await submit('other')
    await expect.poll(async () => (await engine.get(other.id))?.shutdownRequeues).toBe(1)
    expect(await engine.get(other.id)).toMatchObject({ attempts: 0 })
    // An application that has used its share begins no more jobs.
    expect(await engine.get(another.id)).toMatchObject({ token: 0 })
    finish.open()
    await until(other.id, 'SUCCEEDED')
    await engine.close()
  })

  test('has to hurry while all slots are taken', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const { engine, until, id, finish } = await slowly()
    vi.advanceTimersByTime(60_000)
    finish.open()
    expect(await until(id, 'SUCCEEDED')).toMatchObject({ attempts: 1, shutdownRequeues: 1 })
    await engine.close()
  })
})

describe('a step', () => {
  const dispatch = { leaseMs: 300, progressIntervalMs: 10, storageOutageMs: 100 }

  test('that cannot be kept ends the attempt once an outage has lasted too long', async () => {
    const tries: JobChange[] = []
    const memory = memoryJobs()
    const apply: JobStore['apply'] = async (id, change) => {
      if (change.kind === 'step' && change.step.state === 'done') throw (tries.push(change), away)
      return memory.apply(id, change)
    }
    const workflow = onceEach(stepsWorkflow(({ step }) => step.run('sing', async () => {})))
    const { engine, submit } = testEngine(workflow, { dispatch }, { jobs: { ...memory, apply } })
    expect(await engine.run((await submit()).id)).toMatchObject({
      status: 'FAILED',
      failure: expect.stringContaining('no store'),
    })
    expect(tries.length).toBeGreaterThan(1)
    await engine.close()
  })

  test('whose files are being kept ends with the attempt', async () => {
    const signals: (AbortSignal | undefined)[] = []
    const memory = memoryBlobs()
    const put: BlobStore['put'] = async (key, body, options) => {
      if (!key.startsWith('checkpoints/')) return memory.put(key, body, options)
      signals.push(options?.signal)
      return aborted(options?.signal)
    }
    const workflow = stepsWorkflow(async ({ step }) => {
      await step.run('sing', async ({ file }) => {
        const song = file('song')
        await writeFile(song.path, 'la')
        return { song }
      })
    })
    const { engine, submit } = testEngine(workflow, { dispatch }, { blobs: { ...memory, put } })
    const { id } = await submit()
    const run = engine.run(id)
    await expect.poll(() => signals.length).toBe(1)
    await engine.cancel(id)
    expect(await run).toMatchObject({ status: 'FAILED', error: { code: 'CANCELED' } })
    expect(signals[0]?.aborted).toBe(true)
    await engine.close()
  })
})
