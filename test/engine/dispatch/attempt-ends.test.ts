import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { memoryBlobs, memoryJobs } from '../../../src/adapters/memory.js'
import { StemworkError } from '../../../src/core/engine/errors.js'
import { localFile } from '../../../src/core/engine/intake/local-file.js'
import type { JobChange } from '../../../src/core/engine/job/transitions.js'
import type { BlobStore } from '../../../src/core/engine/ports/blob-store.js'
import type { JobStore } from '../../../src/core/engine/ports/job-store.js'
import type { StageContext, Workflow } from '../../../src/core/engine/workflow/workflow.js'
import { gate, keys, recordingLogger, sharedBlobs, stepsWorkflow, testEngine, textWorkflow } from '../harness.js'

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
const untilAborted = ({ signal }: Pick<StageContext, 'signal'>) =>
  new Promise<never>((_, reject) => {
    const fail = () => reject(signal.reason as Error)
    if (signal.aborted) fail()
    else signal.addEventListener('abort', fail)
  })
const away = new StemworkError('STORE_UNAVAILABLE', 'no store', { retryable: true })

async function folder(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'stemwork-ends-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  return directory
}

/** The workflow with one attempt and this time limit. */
const limited = (workflow: Workflow, timeoutMs: number): Workflow => ({
  ...workflow,
  policy: { ...workflow.policy, timeoutMs, maxAttempts: 1 },
})

/** A store that calls `before` before each change. */
function asked(before: (change: JobChange) => unknown): JobStore {
  const jobs = memoryJobs()
  return {
    ...jobs,
    apply: async (id, change) => {
      await before(change)
      return jobs.apply(id, change)
    },
  }
}

describe('the time of an attempt', () => {
  test('starts with its claim, even while it looks for what earlier ones kept', async () => {
    const { logger, lines } = recordingLogger()
    const blobs = sharedBlobs({
      async *list(prefix) {
        await pause(150)
        yield { key: `${prefix}1-n/part-0`, modifiedAt: 0, bytes: 1, etag: '' }
      },
    })
    const { engine, parts, submit } = testEngine(limited(textWorkflow(), 50), { logger }, { blobs })
    const { id } = await submit()
    await parts.jobs.claim({ id, owner: 'dead', nonce: 'n', leaseMs: 1, labels: [] })
    await pause(5)
    expect(await engine.run(id)).toMatchObject({ status: 'FAILED', token: 2, error: { code: 'TIMEOUT' } })
    expect(lines.map(({ fields }) => fields.why)).toEqual([expect.any(String)])
    await engine.close()
  })

  test('ends it even while its upload is read', async () => {
    const path = join(await folder(), 'song')
    await writeFile(path, 'la')
    const workflow = { ...limited(textWorkflow(), 50), inputs: ['inputUrl'] }
    const blobs: BlobStore = { ...memoryBlobs(), get: (_, options) => untilAborted({ signal: options!.signal! }) }
    const { engine } = testEngine(workflow, {}, { blobs })
    const inputs = { inputUrl: localFile(path) }
    const { job } = await engine.submit({ app: 'app', workflow: workflow.id, params: {}, inputs })
    expect(await engine.run(job.id)).toMatchObject({ status: 'FAILED', error: { code: 'TIMEOUT' } })
    await engine.close()
  })

  test('ends at the deadline of the job, and not before', async () => {
    const workflow = textWorkflow(untilAborted)
    const { engine } = testEngine(workflow)
    const deadline = Date.now() + 250
    const { job } = await engine.submit({ app: 'app', workflow: workflow.id, params: {}, deadline })
    expect(await engine.run(job.id)).toMatchObject({ status: 'FAILED', error: { code: 'TIMEOUT', reason: 'deadline' } })
    expect(Date.now()).toBeGreaterThanOrEqual(deadline - 5)
    await engine.close()
  })

  test('continues after an outage of the blob store', async () => {
    const path = join(await folder(), 'song')
    await writeFile(path, 'la')
    const memory = memoryBlobs()
    let outages = 1
    const blobs: BlobStore = {
      ...memory,
      get: async (...args) => (outages-- > 0 ? Promise.reject(away) : memory.get(...args)),
    }
    const workflow = { ...limited(textWorkflow(untilAborted), 150), inputs: ['inputUrl'] }
    const { engine } = testEngine(workflow, {}, { blobs })
    const inputs = { inputUrl: localFile(path) }
    const { job } = await engine.submit({ app: 'app', workflow: workflow.id, params: {}, inputs })
    expect(await engine.run(job.id)).toMatchObject({ status: 'FAILED', error: { code: 'TIMEOUT' } })
    expect(outages).toBeLessThan(0)
    await engine.close()
  })

  test('leaves no timer behind', async () => {
    const workflow = limited(textWorkflow(), 54_321)
    const { engine } = testEngine(workflow)
    const { job } = await engine.submit({
      app: 'app',
      workflow: workflow.id,
      params: {},
      deadline: Date.now() + 43_000,
    })
    const started = vi.spyOn(globalThis, 'setTimeout')
    const cleared = vi.spyOn(globalThis, 'clearTimeout')
    await engine.run(job.id)
    const long = started.mock.results.filter((_, index) => {
      const ms = started.mock.calls[index]?.[1] ?? 0
      return ms > 40_000 && ms <= 54_321
    })
    const ended = new Set(cleared.mock.calls.map(([timer]) => timer as unknown))
    vi.restoreAllMocks()
    expect(long.length).toBeGreaterThan(1)
    expect(long.every(({ value }) => ended.has(value))).toBe(true)
    await engine.close()
  })
})

describe('an attempt that ends', () => {
  const dispatch = { leaseMs: 300, progressIntervalMs: 10, storageOutageMs: 5000 }
  const beats = (changes: JobChange[]) => changes.filter(({ kind }) => kind === 'heartbeat').length

  test('is not a success if it was canceled while it published, and leaves no result', async () => {
    const signals: (AbortSignal | undefined)[] = []
    const memory = memoryBlobs()
    const blobs: BlobStore = {
      ...memory,
      put: async (key, body, options) => {
        signals.push(options?.signal)
        await engine.cancel(id)
        if (options?.signal) await untilAborted({ signal: options.signal }).catch(() => {})
        return await memory.put(key, body)
      },
      putFile: undefined,
    }
    const { engine, submit } = testEngine(textWorkflow(), { dispatch }, { blobs })
    const { id } = await submit()
    expect(await engine.run(id)).toMatchObject({ status: 'FAILED', error: { code: 'CANCELED' } })
    expect(signals.map((signal) => signal?.aborted)).toEqual([true])
    expect(await keys(blobs)).toEqual([])
    await engine.close()
  })

  test('sends no heartbeat after its end or while it is being stopped', async () => {
    const changes: JobChange[] = []
    const [aborted, ended] = [gate(), gate()]
    const workflow = textWorkflow(async (context) => {
      if (context.params.isQuick) return
      await untilAborted(context).catch(() => {})
      aborted.open()
      await ended.opened
    })
    const { engine, submit } = testEngine(workflow, { dispatch }, { jobs: asked((change) => changes.push(change)) })
    const { id } = await submit()
    const run = engine.run(id)
    await expect.poll(() => beats(changes)).toBeGreaterThan(0)
    await engine.cancel(id)
    await aborted.opened
    const before = beats(changes)
    await pause(150)
    expect(beats(changes)).toBe(before)
    ended.open()
    expect(await run).toMatchObject({ status: 'FAILED', error: { code: 'CANCELED' } })
    await engine.run((await submit({ isQuick: true })).id)
    const atEnd = changes.length
    await pause(150)
    expect(changes).toHaveLength(atEnd)
    await engine.close()
  })

  test('with a lost lease writes nothing and logs no error', async () => {
    const { logger, lines } = recordingLogger()
    const memory = memoryJobs()
    let [isLost, tries] = [false, 0]
    const apply: JobStore['apply'] = async (id, change) => {
      if (change.kind !== 'heartbeat' || isLost) return memory.apply(id, change)
      isLost = true
      return undefined
    }
    const workflow = textWorkflow((context) => (++tries === 1 ? untilAborted(context) : undefined))
    const { engine, submit } = testEngine(workflow, { dispatch, logger }, { jobs: { ...memory, apply } })
    expect(await engine.run((await submit()).id)).toMatchObject({ status: 'SUCCEEDED', lapses: 1 })
    expect([tries, lines]).toEqual([2, []])
    await engine.close()
  })

  test('lets the next job begin while its end is written', async () => {
    const written = gate()
    const memory = memoryJobs()
    const apply: JobStore['apply'] = async (id, change) => {
      if (change.kind === 'succeed' && id === first) await written.opened
      return memory.apply(id, change)
    }
    const settings = { dispatch: { concurrency: 1, sweepIntervalMs: 3_600_000 } }
    const { engine, submit, until } = testEngine(textWorkflow(), settings, { jobs: { ...memory, apply } })
    const first = (await submit()).id
    const second = await submit()
    await engine.start()
    await until(second.id, 'SUCCEEDED')
    expect(await engine.get(first)).toMatchObject({ status: 'STARTED' })
    written.open()
    await until(first, 'SUCCEEDED')
    await engine.close()
  })

  test('with a failure before anything was published, removes no results', async () => {
    const removed: string[] = []
    const memory = memoryBlobs()
    const blobs: BlobStore = {
      ...memory,
      deletePrefix: async (prefix, options) => (removed.push(prefix), await memory.deletePrefix(prefix, options)),
    }
    const workflow = limited(
      textWorkflow(() => Promise.reject(new Error('broken'))),
      5000,
    )
    const { engine, submit } = testEngine(workflow, {}, { blobs })
    expect(await engine.run((await submit()).id)).toMatchObject({ status: 'FAILED' })
    expect(removed.filter((prefix) => prefix.startsWith('results/'))).toEqual([])
    await engine.close()
  })

  test('logs each failure once, and logs nothing for a hand-back', async () => {
    const { logger, lines } = recordingLogger()
    let tries = 0
    const stop = new AbortController()
    const workflow = textWorkflow((context) => {
      if (++tries === 1) throw new Error('broken')
      stop.abort()
      return untilAborted(context)
    })
    const { engine, submit } = testEngine(workflow, { logger })
    const { id } = await submit()
    await engine.run(id, stop).catch(() => {})
    await expect.poll(async () => (await engine.get(id))?.shutdownRequeues).toBe(1)
    expect(await engine.get(id)).toMatchObject({ status: 'QUEUED', shutdownRequeues: 1 })
    const err = expect.objectContaining({ code: 'INTERNAL_ERROR' })
    expect(lines).toEqual([{ level: 'warn', fields: expect.objectContaining({ jobId: id, err }) }])
    await engine.close()
  })

  test('says that the nodes differ where a workflow does not take the params that another has accepted', async () => {
    const shared = { jobs: memoryJobs(), blobs: sharedBlobs() }
    const accepting = testEngine(textWorkflow(), {}, shared)
    const { id } = await accepting.submit({ model: 'large' })
    const older = { ...textWorkflow(), params: z.strictObject({ format: z.string().optional() }) }
    const running = testEngine(older, { dispatch: { maxAttempts: 1 } }, shared)
    const job = await running.engine.run(id)
    expect(job).toMatchObject({ status: 'FAILED', error: { code: 'INTERNAL_ERROR', retryable: true } })
    expect(job?.failure).toMatch(/model: is not known: expected only format\. .* the same options and version/)
    await accepting.engine.close()
    await running.engine.close()
  })

  test('waits for its store as long as an outage may last, or for one lease if the process is closing', async () => {
    for (const [code, backAfterMs] of [
      ['TIMEOUT', 500],
      ['SHUTTING_DOWN', Infinity],
    ] as const) {
      const { logger, lines } = recordingLogger()
      let since: number | undefined
      const jobs = asked(({ kind }) => {
        if (kind === 'heartbeat') return
        since ??= performance.now()
        if (performance.now() - since < backAfterMs) throw away
      })
      const began = gate()
      const workflow = textWorkflow((context) => (began.open(), untilAborted(context)))
      const timeoutMs = code === 'TIMEOUT' ? 30 : 60_000
      const { engine, submit } = testEngine(limited(workflow, timeoutMs), { dispatch, logger }, { jobs })
      const { id } = await submit()
      if (code === 'TIMEOUT') await engine.run(id)
      else {
        await engine.start()
        await began.opened
        await engine.close({ timeoutMs: 0 }).catch(() => {})
        // The end could not be recorded.
        await expect.poll(() => lines.filter(({ level }) => level === 'error')).toHaveLength(1)
      }
      expect(performance.now() - (since ?? 0), code).toBeLessThan(dispatch.storageOutageMs / 2)
      expect((await jobs.get(id))?.error?.code).toBe(code === 'TIMEOUT' ? code : undefined)
      // No other attempt was needed.
      expect((await jobs.get(id))?.token).toBe(1)
      await engine.close()
    }
  })
})

describe('the folder of an attempt', () => {
  test('is created only if there are inputs, outputs or steps', async () => {
    const scratchDirectory = await folder()
    const found: string[][] = []
    const look = async () => void found.push(await readdir(scratchDirectory))
    const silent = { ...textWorkflow(), outputs: () => ({}), stages: [{ name: 'look', run: look }] } as Workflow
    const steps = stepsWorkflow(({ step }) => step.run('look', look).then(() => {}))
    for (const workflow of [silent, steps]) {
      const { engine, submit } = testEngine(workflow, { scratchDirectory })
      expect(await engine.run((await submit()).id)).toMatchObject({ status: 'SUCCEEDED' })
      await engine.close()
    }
    expect(found.map(({ length }) => length)).toEqual([0, 1])
  })

  test('of a workflow without inputs shows no fetching', async () => {
    const workflow = textWorkflow(async ({ progress }) => {
      await pause(60)
      progress(0.5)
      await pause(60)
    })
    const { engine, submit } = testEngine(workflow, { dispatch: { progressIntervalMs: 10 } })
    const shown = new Set<string | null>()
    engine.on('job.progressed', ({ job }) => void shown.add(job.stage))
    await engine.run((await submit()).id)
    expect([...shown]).not.toContain('fetch')
    await engine.close()
  })
})

test('storing a step survives an outage, keeps the lease, is announced, and leaves no file', async () => {
  let outages = 2
  const jobs = asked(({ kind }) => {
    if (kind === 'step' && outages-- > 0) throw away
  })
  const { logger, lines } = recordingLogger()
  const until: (number | undefined)[] = []
  const blobs = memoryBlobs()
  const workflow = stepsWorkflow(async ({ step, jobId }) => {
    await step.run('sing', async ({ file }) => {
      const song = file('song')
      await writeFile(song.path, 'la')
      return { song }
    })
    until.push((await jobs.get(jobId))?.lease?.until)
  })
  const { engine, submit } = testEngine(workflow, { logger }, { jobs, blobs })
  const shown: unknown[] = []
  engine.on('job.progressed', ({ job }) => void shown.push(job.steps.map(({ name, state }) => [name, state])))
  expect(await engine.run((await submit()).id)).toMatchObject({ status: 'SUCCEEDED' })
  expect(outages).toBeLessThan(0)
  expect(until[0]).toBeGreaterThan(Date.now())
  expect(shown).toContainEqual([['sing', 'done']])
  expect(lines.filter(({ level }) => level === 'warn')).toHaveLength(2)
  expect(await keys(blobs, ['checkpoints/'])).toEqual([])
  await engine.close()
})
