import { describe, expect, test } from 'vitest'
import { memoryApplications, memoryBlobs, memoryJobs } from '../../../src/adapters/memory.js'
import { memoryQueue } from '../../../src/adapters/queues/memory/memory-queue.js'
import { badInput, StemworkError } from '../../../src/core/engine/errors.js'
import type { JobQueue } from '../../../src/core/engine/ports/job-queue.js'
import { newWebhookSecret } from '../../../src/core/engine/webhooks/signature.js'
import { bytes, gate, keys, steppingClock, testEngine, textOf, textWorkflow } from '../harness.js'

describe('a job', () => {
  test('goes from QUEUED over STARTED to SUCCEEDED and its output can be read', async () => {
    const { engine, events, submit, until, parts } = testEngine(textWorkflow())
    const queued = await submit()
    expect(queued).toMatchObject({ status: 'QUEUED', startedAt: null, completedAt: null, outputs: null, progress: 0 })
    await engine.start()
    const done = await until(queued.id, 'SUCCEEDED')
    expect(done.progress).toBe(1)
    expect(done.expiresAt).toBe((done.completedAt ?? 0) + engine.options.retention.resultsMs)
    expect(await textOf(parts.blobs, done.outputs?.text!.key ?? '')).toBe(`text of ${queued.id}`)
    expect(events).toEqual(['job.created', 'job.started', 'job.succeeded'])
    await engine.close()
  })

  test('that fails for a temporary reason is retried, and succeeds if the reason passes', async () => {
    let attempts = 0
    const { engine, events, submit, until } = testEngine(
      textWorkflow(() => {
        if (++attempts < 3) throw new StemworkError('INTERNAL_ERROR', 'not yet', { retryable: true })
      }),
    )
    await engine.start()
    const done = await until((await submit()).id, 'SUCCEEDED')
    expect(done.attempts).toBe(3)
    expect(events.filter((name) => name === 'job.requeued')).toHaveLength(2)
    await engine.close()
  })

  test('that keeps failing ends FAILED after the last attempt, with a message instead of the cause', async () => {
    const { engine, submit, until } = testEngine(
      textWorkflow(() => {
        throw new Error('secret detail in /var/lib')
      }),
    )
    await engine.start()
    const failed = await until((await submit()).id, 'FAILED')
    expect(failed.attempts).toBe(3)
    expect(failed.error?.code).toBe('INTERNAL_ERROR')
    expect(failed.error?.message).not.toContain('secret')
    await engine.close()
  })

  test('whose input is bad fails at once and is not retried', async () => {
    const { engine, submit, until, parts } = testEngine(
      textWorkflow(() => {
        throw badInput('decode_failed', 'The file could not be decoded.')
      }),
    )
    await engine.start()
    const failed = await until((await submit()).id, 'FAILED')
    expect(failed).toMatchObject({
      attempts: 1,
      error: { code: 'BAD_INPUT', reason: 'decode_failed', retryable: false },
    })
    expect(await keys(parts.blobs)).toEqual([])
    await engine.close()
  })

  test('that exceeds the time limit ends with TIMEOUT', async () => {
    const { engine, submit, until } = testEngine(
      textWorkflow(
        ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      ),
      { limits: { jobTimeoutMs: 30 } },
    )
    await engine.start()
    expect((await until((await submit()).id, 'FAILED')).error?.code).toBe('TIMEOUT')
    await engine.close()
  })
})

describe('submit', () => {
  test('refuses params that are not JSON, even where their schema takes anything', async () => {
    const { engine } = testEngine(textWorkflow())
    const circle: Record<string, unknown> = {}
    circle.circle = circle
    for (const params of [circle, { number: 5n }]) {
      const job = { workflow: 'test/text', params }
      const refusal = {
        code: 'INVALID_PARAMS',
        message: 'engine.submit: params: must be JSON, without a BigInt or an object that contains itself.',
      }
      await expect(engine.submit({ ...job, app: 'a', idempotencyKey: 'k' })).rejects.toMatchObject(refusal)
      await expect(engine.submitBatch({ app: 'a', jobs: [job], idempotencyKey: 'k' })).rejects.toMatchObject({
        code: 'INVALID_PARAMS',
        details: { issues: [{ path: 'jobs.0.params' }] },
      })
    }
    expect(await engine.count({})).toBe(0)
    await engine.close()
  })

  test.each(['a/b', 'auth0|5f7c', '..', '*', '', 'a'.repeat(129)])('refuses the application %j', async (app) => {
    const { engine } = testEngine(textWorkflow())
    const refusal = { code: 'INVALID_PARAMS', details: { issues: [{ path: 'app' }] } }
    const workflow = 'test/text'
    await expect(engine.submit({ app, workflow })).rejects.toMatchObject(refusal)
    await expect(engine.submitBatch({ app, jobs: [{ workflow }] })).rejects.toMatchObject(refusal)
    await engine.submit({ app: Buffer.from('auth0|5f7c').toString('base64url'), workflow })
    await engine.close()
  })

  test('refuses an unknown workflow and names the known ones', async () => {
    const { submit } = testEngine(textWorkflow())
    await expect(submit({}, 'service/none')).rejects.toMatchObject({
      code: 'UNKNOWN_WORKFLOW',
      message: expect.stringContaining('test/text'),
    })
  })

  test('returns the first job for a repeated idempotency key and refuses the key with other content', async () => {
    const { engine } = testEngine(textWorkflow())
    const input = { app: 'app', workflow: 'test/text', params: { a: 1, b: 2 }, idempotencyKey: 'k' }
    const first = await engine.submit(input)
    const second = await engine.submit({ ...input, params: { b: 2, a: 1 } })
    expect(second).toMatchObject({ created: false, job: { id: first.job.id } })
    await expect(engine.submit({ ...input, params: { a: 2 } })).rejects.toMatchObject({ code: 'IDEMPOTENCY_CONFLICT' })
    expect(await engine.count({})).toBe(1)
  })

  test('refuses more waiting jobs than the limit of each application', async () => {
    const { engine, submit } = testEngine(textWorkflow(), { limits: { maxQueuedJobs: 2 } })
    await submit()
    await submit()
    await expect(submit()).rejects.toMatchObject({ code: 'QUEUE_FULL', retryable: true })
    await expect(engine.submit({ app: 'other', workflow: 'test/text', params: {} })).resolves.toBeDefined()
  })

  test('accepts exactly as many of 200 simultaneous jobs as the limit allows', async () => {
    const { engine, submit } = testEngine(textWorkflow(), { limits: { maxQueuedJobs: 10 } })
    const outcomes = await Promise.allSettled(Array.from({ length: 200 }, () => submit()))
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(10)
    expect(await engine.count({ statuses: ['QUEUED'] })).toBe(10)
  })

  test('answers a repeated idempotency key before it checks anything that may have changed since', async () => {
    const parts = { jobs: memoryJobs(), applications: memoryApplications() }
    const input = { app: 'app', workflow: 'test/text', params: {}, webhook: { url: 'https://example.com/' } }
    const settings = { limits: { maxQueuedJobs: 1 } }
    const before = testEngine(textWorkflow(), { ...settings, webhooks: { secret: newWebhookSecret() } }, parts)
    const { job } = await before.engine.submit({ ...input, idempotencyKey: 'k' })
    // The queue is now full, and the secret and the workflow are gone.
    const { engine } = testEngine(
      textWorkflow(() => {}, 'test/other'),
      settings,
      parts,
    )
    const beforeCreate = () => Promise.reject(new Error('asked about a repeat'))
    expect(await engine.submit({ ...input, idempotencyKey: 'k' }, { beforeCreate })).toEqual({ job, created: false })
    await expect(
      engine.submit({ ...input, params: { other: 1 }, idempotencyKey: 'k' }, { beforeCreate }),
    ).rejects.toMatchObject({ code: 'IDEMPOTENCY_CONFLICT' })
    await expect(before.engine.submit({ ...input, idempotencyKey: 'k2' })).rejects.toMatchObject({ code: 'QUEUE_FULL' })
  })

  test('calls the host before it creates a new job, and creates none if that throws', async () => {
    const { engine } = testEngine(textWorkflow())
    const refusal = new Error('refused')
    const input = { app: 'app', workflow: 'test/text', params: {}, idempotencyKey: 'k' }
    await expect(engine.submit(input, { beforeCreate: () => Promise.reject(refusal) })).rejects.toBe(refusal)
    expect(await engine.count({})).toBe(0)
  })

  test('accepts the job even if no worker can be notified, and a worker finds it', async () => {
    const queue: JobQueue = { ...memoryQueue(), notify: () => Promise.reject(new Error('queue is away')) }
    const { engine, submit, until } = testEngine(textWorkflow(), {}, { queue })
    const job = await submit()
    await engine.start()
    expect((await until(job.id, 'SUCCEEDED')).status).toBe('SUCCEEDED')
    await engine.close()
  })

  test('names the option that is wrong', () => {
    expect(() => testEngine(textWorkflow(), { limits: { maxFileBytes: -1 } })).toThrow(/limits\.maxFileBytes/)
  })
})

describe('cancel', () => {
  test('ends a queued job at once', async () => {
    const { engine, submit } = testEngine(textWorkflow())
    const job = await submit()
    expect(await engine.cancel(job.id)).toMatchObject({ status: 'FAILED', error: { code: 'CANCELED' } })
    expect(await engine.runOnce(job.id)).toBeUndefined()
  })

  test('stops a running job', async () => {
    const started = gate()
    const { engine, submit, until } = testEngine(
      textWorkflow(({ signal }) => {
        started.open()
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      }),
    )
    await engine.start()
    const job = await submit()
    await started.opened
    await engine.cancel(job.id)
    expect((await until(job.id, 'FAILED')).error?.code).toBe('CANCELED')
    await engine.close()
  })

  test('reaches a worker in another process with its next heartbeat', async () => {
    const jobs = memoryJobs()
    const blobs = memoryBlobs()
    const started = gate()
    const workflow = textWorkflow(({ signal }) => {
      started.open()
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    })
    const worker = testEngine(workflow, { dispatch: { leaseMs: 300 } }, { jobs, blobs })
    const api = testEngine(workflow, {}, { jobs, blobs })
    const job = await api.submit()
    await worker.engine.start()
    await started.opened
    await api.engine.cancel(job.id)
    expect((await worker.until(job.id, 'FAILED')).error?.code).toBe('CANCELED')
    await worker.engine.close()
  })

  test('ends a job that its worker hands back before it learns of the cancel', async () => {
    const jobs = memoryJobs()
    const [started, canceled] = [gate(), gate()]
    const workflow = textWorkflow(async () => {
      started.open()
      await canceled.opened
      throw new Error('the attempt fails')
    })
    const dispatch = { progressIntervalMs: 60_000, retryDelayMs: 60_000 }
    const worker = testEngine(workflow, { dispatch }, { jobs })
    const api = testEngine(workflow, {}, { jobs })
    const job = await api.submit()
    const attempt = worker.engine.runOnce(job.id)
    await started.opened
    expect(await api.engine.cancel(job.id)).toMatchObject({ status: 'STARTED' })
    canceled.open()
    expect(await attempt).toMatchObject({ status: 'FAILED', error: { code: 'CANCELED' } })
    expect(await api.engine.get(job.id)).toMatchObject({
      status: 'FAILED',
      settlement: { processorSeconds: expect.any(Number) },
    })
    expect(worker.events).toEqual(['job.started', 'job.failed'])
  })

  test('is carried out by the next claim if the worker that should have received it is lost', async () => {
    const clock = steppingClock()
    const jobs = memoryJobs({ clock: clock.now })
    const { engine, submit } = testEngine(textWorkflow(), {}, { jobs })
    const job = await submit()
    await jobs.claim({ id: job.id, owner: 'lost', leaseMs: 1000 })
    await engine.cancel(job.id)
    clock.advance(1001)
    expect(await engine.run(job.id)).toMatchObject({ status: 'FAILED', error: { code: 'CANCELED' } })
  })
})

describe('delete', () => {
  test('removes a finished job, its results, and its upload, which was kept after the end', async () => {
    const { engine, parts, until } = testEngine(textWorkflow())
    await parts.blobs.put('uploads/app/1', bytes('song'))
    const { job } = await engine.submit({
      app: 'app',
      workflow: 'test/text',
      params: {},
      uploads: { inputUrl: 'uploads/app/1' },
    })
    await engine.start()
    await until(job.id, 'SUCCEEDED')
    expect(await keys(parts.blobs, ['uploads/'])).toEqual(['uploads/app/1'])
    await engine.delete(job.id)
    expect(await engine.get(job.id)).toBeUndefined()
    // A mark of its ticket remains for as long as the ticket may be valid.
    expect(await keys(parts.blobs)).toEqual(['uploads/app/1.used'])
    expect(await engine.delete(job.id)).toBeUndefined()
    await engine.close()
  })

  test('aborts a running job and discards its late result', async () => {
    const started = gate()
    const finish = gate()
    const { engine, parts, submit, events } = testEngine(
      textWorkflow(async () => {
        started.open()
        await finish.opened
      }),
    )
    const job = await submit()
    const run = engine.run(job.id)
    await started.opened
    await engine.delete(job.id)
    finish.open()
    expect(await run).toBeUndefined()
    expect(await keys(parts.blobs)).toEqual([])
    expect(events).not.toContain('job.succeeded')
  })

  test('keeps an upload that another job still waits for', async () => {
    const { engine, parts } = testEngine(textWorkflow())
    await parts.blobs.put('uploads/app/1', bytes('song'))
    const input = { app: 'app', workflow: 'test/text', params: {}, uploads: { inputUrl: 'uploads/app/1' } }
    const first = await engine.submit(input)
    await engine.submit(input)
    await engine.delete(first.job.id)
    expect(await keys(parts.blobs)).toEqual(['uploads/app/1'])
  })

  test("keeps another job's result that it had as its input", async () => {
    const { engine, parts, submit } = testEngine(textWorkflow())
    const first = await engine.run((await submit()).id)
    const key = first?.outputs?.text?.key ?? ''
    const { job } = await engine.submit({ app: 'app', workflow: 'test/text', uploads: { inputUrl: key } })
    await engine.delete(job.id)
    expect(await keys(parts.blobs)).toEqual([key])
    await engine.close()
  })

  test('is finished by the sweep when the files could not be removed', async () => {
    const inner = memoryBlobs()
    let broken = true
    const blobs = {
      ...inner,
      deletePrefix: (prefix: string) => (broken ? Promise.reject(new Error('away')) : inner.deletePrefix(prefix)),
    }
    const { engine, submit } = testEngine(textWorkflow(), {}, { blobs })
    const job = await submit()
    await engine.run(job.id)
    await engine.delete(job.id)
    expect(await engine.get(job.id)).toBeUndefined()
    expect(await keys(inner)).toHaveLength(1)
    broken = false
    expect((await engine.sweep()).deleted).toBe(1)
    expect(await keys(inner)).toEqual([])
  })

  test('does not reach the jobs of another application', async () => {
    const { engine, submit } = testEngine(textWorkflow())
    const job = await submit()
    expect(await engine.delete(job.id, { app: 'other' })).toBeUndefined()
    expect(await engine.get(job.id, { app: 'app' })).toBeDefined()
  })
})
