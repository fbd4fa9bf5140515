import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { memoryJobs } from '../../../src/adapters/memory.js'
import { badInput } from '../../../src/core/engine/errors.js'
import type { JobEngine } from '../../../src/core/engine/engine.js'
import type { JobRecord } from '../../../src/core/engine/job/job.js'
import { newWebhookSecret } from '../../../src/core/engine/webhooks/signature.js'
import { steppingClock, testEngine, textWorkflow } from '../harness.js'

/** A receiver that records its messages. */
async function receiver() {
  const messages: { id: string; type: string; data: Record<string, unknown> }[] = []
  const server = createServer((request, response) => {
    let text = ''
    request.on('data', (part: Buffer) => (text += part.toString()))
    request.on('end', () => {
      messages.push({ id: String(request.headers['webhook-id']), ...(JSON.parse(text) as { type: string; data: {} }) })
      response.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, messages }
}

const settings = { fetch: { allowPrivate: true }, webhooks: { secret: newWebhookSecret() } }
const job = (params = {}) => ({ workflow: 'test/text', params })
const failsIf = () =>
  textWorkflow(({ params }) => {
    if (params.fails) throw badInput('decode_failed', 'no')
  })

describe('a batch', () => {
  test('is accepted as a whole or refused with what is wrong with each job', async () => {
    const { engine, events } = testEngine(textWorkflow())
    const wrong = engine.submitBatch({
      app: 'a',
      jobs: [job(), { workflow: 'none' }, { ...job(), priority: 9 }, { ...job(), copyResultsTo: { x: 'http://x' } }],
    })
    await expect(wrong).rejects.toMatchObject({
      code: 'INVALID_PARAMS',
      details: {
        issues: [
          { path: 'jobs.1.workflow', message: expect.stringContaining('test/text') },
          { path: 'jobs.2.priority' },
          { path: 'jobs.3.copyResultsTo.x' },
        ],
      },
    })
    await expect(engine.submitBatch({ app: 'a', jobs: [] })).rejects.toMatchObject({ code: 'INVALID_PARAMS' })
    expect([events, await engine.count({})]).toEqual([[], 0])
    const { name, ids, created } = await engine.submitBatch({ app: 'a', jobs: [job(), job(), job()] })
    expect([created, ids.length, events.length]).toEqual([true, 3, 3])
    expect(await engine.batch('a', name)).toMatchObject({ total: 3, counts: { QUEUED: 3 }, progress: 0, endedAt: null })
    expect(await engine.batch('b', name)).toBeUndefined()
  })

  test('is refused completely if there is no room for all of its jobs', async () => {
    const { engine } = testEngine(textWorkflow(), { limits: { maxQueuedJobs: 4 }, quota: { jobs: 5 } })
    await engine.submitBatch({ app: 'a', name: 'b', jobs: [job(), job(), job()] })
    await expect(engine.submitBatch({ app: 'a', name: 'b', jobs: [job(), job()] })).rejects.toMatchObject({
      code: 'QUEUE_FULL',
    })
    for (let n = 0; n < 3; n++) await engine.run()
    await expect(engine.submitBatch({ app: 'a', name: 'b', jobs: [job(), job(), job()] })).rejects.toMatchObject({
      code: 'QUOTA_EXCEEDED',
      details: { quota: 'jobs', limit: 5, used: 3 },
    })
    expect(await engine.batch('a', 'b')).toMatchObject({ total: 3, endedAt: expect.any(Number) })
  })

  test('that is sent again with its idempotency key is created only once', async () => {
    const { engine } = testEngine(textWorkflow())
    const given = { app: 'a', jobs: [job(), job({ n: 2 })], idempotencyKey: 'k' }
    const first = await engine.submitBatch(given)
    const both = await Promise.all([engine.submitBatch(given), engine.submitBatch(given)])
    for (const again of both) expect(again).toEqual({ ...first, created: false })
    expect(await engine.count({ app: 'a' })).toBe(2)
    // Under another name, it would be another batch without any of these jobs.
    await expect(engine.submitBatch({ ...given, name: 'c' })).rejects.toMatchObject({ code: 'IDEMPOTENCY_CONFLICT' })
    expect(await engine.batch('a', 'c')).toBeUndefined()
    for (const id of first.ids) await engine.delete(id)
    await engine.submitBatch(given)
    expect(await engine.count({ app: 'a' })).toBe(0)
    await expect(engine.submitBatch({ ...given, jobs: [job()] })).rejects.toMatchObject({
      code: 'IDEMPOTENCY_CONFLICT',
    })
    expect((await engine.submitBatch({ ...given, app: 'b' })).created).toBe(true)
  })

  test('that is sent again is not checked again: what it needed may be gone, and the service be draining', async () => {
    const clock = steppingClock()
    const { engine } = testEngine(textWorkflow(), {}, { jobs: memoryJobs({ clock: clock.now }) })
    const deadline = clock.now() + 1000
    const given = { app: 'a', jobs: [{ ...job(), deadline }], idempotencyKey: 'k' }
    const first = await engine.submitBatch(given)
    clock.advance(2000)
    await engine.schedule({ kind: 'deployment' }, { state: 'draining' })
    const beforeCreate = vi.fn()
    expect(await engine.submitBatch(given, { beforeCreate })).toEqual({ ...first, created: false })
    expect(beforeCreate).not.toHaveBeenCalled()
    const withoutJson = { ...given, jobs: [job({ n: 1n })], idempotencyKey: 'other' }
    await expect(engine.submitBatch(withoutJson)).rejects.toMatchObject({ code: 'INVALID_PARAMS' })
  })

  test('sends one message when all its jobs have ended, and another when a job that was run again has', async () => {
    const { url, messages } = await receiver()
    const { engine } = testEngine(failsIf(), settings)
    const jobs = [job(), job({ fails: true }), job()]
    const { ids } = await engine.submitBatch({ app: 'a', name: 'b', jobs, webhook: { url } })
    await engine.run()
    await engine.run()
    await engine.sendWebhooks()
    expect(messages).toEqual([])
    await engine.run()
    await sent(engine, messages, 1)
    expect(messages).toEqual([
      expect.objectContaining({
        type: 'batch.ended',
        data: { name: 'b', total: 3, counts: { QUEUED: 0, STARTED: 0, SUCCEEDED: 2, FAILED: 1 } },
      }),
    ])
    await engine.sendWebhooks()
    expect(messages.length).toBe(1)
    await engine.retry(ids[1] ?? '')
    expect(await engine.batch('a', 'b')).toMatchObject({ endedAt: null, counts: { QUEUED: 1 } })
    await engine.run()
    await sent(engine, messages, 2)
    expect(new Set(messages.map(({ id }) => id)).size).toBe(2)
  })

  test('ends when its last open job is deleted or canceled, too', async () => {
    const { url, messages } = await receiver()
    const { engine } = testEngine(textWorkflow(), settings)
    for (const [index, end] of (['delete', 'cancel'] as const).entries()) {
      const { ids } = await engine.submitBatch({ app: 'a', jobs: [job(), job()], webhook: { url } })
      await engine.run(ids[0])
      await engine[end](ids[1] ?? '')
      await sent(engine, messages, index + 1)
    }
  })

  test('has not ended while a job is open that was added alone', async () => {
    const { engine } = testEngine(textWorkflow(), settings)
    await engine.submitBatch({ app: 'a', name: 'b', jobs: [job()] })
    await engine.run()
    await expect.poll(() => engine.batch('a', 'b')).toMatchObject({ endedAt: expect.any(Number) })
    await engine.submit({ app: 'a', ...job(), batchName: 'b' })
    expect(await engine.batch('a', 'b')).toMatchObject({ endedAt: null, counts: { QUEUED: 1 } })
    await engine.run()
    await expect.poll(() => engine.batch('a', 'b')).toMatchObject({ endedAt: expect.any(Number), total: 2 })
  })

  test('does not end if a job is run again while the ended ones are counted', async () => {
    const { url, messages } = await receiver()
    const memory = memoryJobs()
    let retried = false
    const jobs: typeof memory = {
      ...memory,
      async count(query, options) {
        if (query.statuses?.[0] === 'QUEUED' && query.statuses.length === 1 && !retried) {
          retried = true
          await engine.retry(ids[0] ?? '')
        }
        return await memory.count(query, options)
      },
    }
    const { engine } = testEngine(failsIf(), settings, { jobs })
    const { ids } = await engine.submitBatch({ app: 'a', name: 'b', jobs: [job({ fails: true })], webhook: { url } })
    await engine.run()
    await expect.poll(() => retried).toBe(true)
    await engine.sendWebhooks()
    await engine.run()
    await sent(engine, messages, 1)
    expect(messages.map(({ data }) => data.counts)).toEqual([{ QUEUED: 0, STARTED: 0, SUCCEEDED: 0, FAILED: 1 }])
  })

  test('is announced once by many processes, even if the one that ended its last job died at once', async () => {
    const { url, messages } = await receiver()
    const clock = steppingClock(Date.now())
    const jobs = memoryJobs({ clock: clock.now })
    const engines = Array.from({ length: 4 }, () => testEngine(textWorkflow(), settings, { jobs }).engine)
    const [first] = engines
    await first?.submitBatch({ app: 'a', jobs: [job()], webhook: { url } })
    // Written without the engine's knowledge, as if its process had died after this write.
    const running = await jobs.claim({ owner: 'w', leaseMs: 1000 })
    await jobs.apply(running?.id ?? '', {
      kind: 'succeed',
      token: running?.token ?? 0,
      outputs: {},
      details: {},
      retentionMs: 1000,
      messages: [],
    })
    await Promise.all(engines.map((engine) => engine.sendWebhooks()))
    expect(messages).toEqual([])
    clock.advance(60_000)
    await Promise.all(engines.map((engine) => engine.sendWebhooks()))
    await Promise.all(engines.map((engine) => engine.sendWebhooks()))
    expect(messages.length).toBe(1)
  })
})

describe('bulk operations', () => {
  test('act on the matching jobs, in pieces that continue where they stopped', async () => {
    const { engine } = testEngine(textWorkflow())
    for (let n = 0; n < 25; n++) await engine.submit({ app: n % 5 ? 'a' : 'b', ...job(), batchName: `b${n % 2}` })
    let calls = 0
    const all = async (action: 'cancel' | 'retry' | 'delete', query: Parameters<JobEngine['bulk']>[1]) => {
      let done = 0
      let after: Parameters<JobEngine['bulk']>[2] extends infer _
        ? { createdAt: number; id: string } | undefined
        : never
      do {
        const report = await engine.bulk(action, query, { limit: 7, after })
        expect(report.refused).toEqual([])
        done += report.done
        after = report.next
        calls++
      } while (after)
      return done
    }
    expect(await all('cancel', { app: 'a' })).toBe(20)
    expect(calls).toBe(3)
    expect(await engine.count({ statuses: ['FAILED'] })).toBe(20)
    expect(await all('retry', { app: 'a', batchName: 'b0' })).toBe(10)
    expect(await all('retry', { app: 'a', statuses: ['QUEUED'] })).toBe(0)
    expect(await all('delete', { statuses: ['FAILED'] })).toBe(10)
    expect(await engine.count({ statuses: ['QUEUED'] })).toBe(15)
  })

  test('search 2,000 jobs at a time for filters that no index covers', async () => {
    const { engine } = testEngine(textWorkflow(), { limits: { maxQueuedJobs: 3000 } })
    const jobs = Array.from({ length: 1000 }, (_, n) => ({ ...job(), name: n === 0 ? 'wanted' : null }))
    for (let n = 0; n < 3; n++) await engine.submitBatch({ app: 'a', jobs })
    const where = ({ name }: JobRecord) => name === 'wanted'
    const found = await engine.search({ app: 'a', limit: 10 }, where)
    expect(found).toMatchObject({ looked: 2000, next: expect.anything() })
    const rest = await engine.search({ app: 'a', limit: 10, after: found.next }, where)
    expect(rest).toEqual({ looked: 1000, jobs: [expect.anything()] })
    expect([...found.jobs, ...rest.jobs].map(({ name }) => name)).toEqual(['wanted', 'wanted', 'wanted'])

    const first = await engine.bulk('cancel', { app: 'a' }, { where })
    const { next } = first
    const second = await engine.bulk('cancel', { app: 'a' }, { where, after: next })
    expect([first.done + second.done, next, second.next]).toEqual([3, found.next, undefined])
    expect(await engine.count({ statuses: ['FAILED'] })).toBe(3)
  })

  test('stop when there is no more room, and say so', async () => {
    const { engine } = testEngine(textWorkflow(), { limits: { maxQueuedJobs: 10 } })
    for (let n = 0; n < 10; n++) await engine.submit({ app: 'a', ...job() })
    await engine.bulk('cancel', { app: 'a' })
    for (let n = 0; n < 4; n++) await engine.submit({ app: 'a', ...job() })
    const report = await engine.bulk('retry', { app: 'a' })
    expect(report.done).toBe(6)
    expect(report.refused.map(({ code }) => code)).toEqual(['QUEUE_FULL', 'QUEUE_FULL'])
    expect(report).toMatchObject({ isFull: true, next: expect.anything() })
    while (await engine.run());
    expect(await engine.bulk('retry', { app: 'a' }, { after: report.next })).toMatchObject({ done: 4, refused: [] })
  })
})

/** The end of a job is noticed outside its run. */
async function sent(engine: JobEngine, messages: readonly unknown[], count: number): Promise<void> {
  while (messages.length < count) {
    await engine.sendWebhooks()
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
