import { hash } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { memoryJobs } from '../../src/adapters/memory.js'
import { sampleJob } from '../../src/contract/job-samples.js'
import {
  type Batch,
  batchKey,
  batchKind,
  ended,
  isOfBatch,
  nextLookMs,
  repeatedId,
  withRequest,
} from '../../src/core/engine/batch/batch.js'
import { Batches, type NewBatch } from '../../src/core/engine/batch/batches.js'
import { StemworkError } from '../../src/core/engine/errors.js'
import { JobEvents } from '../../src/core/engine/events.js'
import type { Turn } from '../../src/core/engine/limits/rested.js'
import type { JobStore } from '../../src/core/engine/ports/job-store.js'
import { noTracing, type SpanOrder, type Tracing } from '../../src/core/engine/ports/tracing.js'
import { sliceRows } from '../../src/core/engine/queries/job-slices.js'
import { messageSender } from '../../src/core/engine/webhooks/message-sender.js'
import { StoreClock } from '../../src/core/engine/store-clock.js'
import { newWebhookSecret } from '../../src/core/engine/webhooks/signature.js'
import { recordingLogger, testEngine, textWorkflow } from '../engine/harness.js'

const start = 1_700_000_000_000
// Only the date is faked: the messages use real sockets.
beforeEach(() => void vi.useFakeTimers({ toFake: ['Date', 'performance'], now: start }))
afterEach(() => void vi.useRealTimers())

/** A receiver that answers with these statuses in turn; the last one repeats. */
async function receiver(...statuses: number[]) {
  const messages: { id: string; data: unknown }[] = []
  const server = createServer((request, response) => {
    let text = ''
    request.on('data', (part: Buffer) => (text += part.toString()))
    request.on('end', () => {
      const { data } = JSON.parse(text) as { data: unknown }
      messages.push({ id: String(request.headers['webhook-id']), data })
      response.writeHead((statuses.length > 1 ? statuses.shift() : statuses[0]) ?? 204).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => new Promise((resolve) => server.close(() => resolve())))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, messages }
}

function batches(changes: Partial<JobStore> = {}, settings: Parameters<typeof testEngine>[1] = {}) {
  const jobs: JobStore = { ...memoryJobs(), ...changes }
  const { logger, lines } = recordingLogger()
  const webhooks = { secret: newWebhookSecret(), retryDelaysMs: [10_000, 100_000] }
  const {
    engine: { options },
    parts: { applications },
  } = testEngine(textWorkflow(), {
    fetch: { allowPrivate: true },
    webhooks,
    retention: { jobsMs: 500_000 },
    ...settings,
  })
  const clock = new StoreClock(jobs)
  const sender = messageSender({ jobs, clock, applications, events: new JobEvents(logger), options, logger })
  const all = new Batches({ jobs, clock, sender, options, logger })
  const place = { app: 'a', batchName: 'b' }
  return {
    all,
    sender,
    jobs,
    lines,
    add: (fields: Partial<NewBatch> = {}, limits: Parameters<Batches['add']>[1] = {}) =>
      all.add({ app: 'a', name: 'b', webhook: null, request: null, jobs: [sampleJob(place)], ...fields }, limits),
    look: () => all.look(place),
    status: () => all.status('a', 'b'),
    /** Ends the next `count` jobs, or reports their progress. */
    async run(count = 1, progress?: number) {
      for (let n = 0; n < count; n++) {
        const job = await jobs.claim({ owner: 'w', leaseMs: 1000 })
        if (!job) throw new Error('no job waits')
        const change = { token: job.token, outputs: {}, details: {}, retentionMs: 1, messages: [] }
        if (progress === undefined) await jobs.apply(job.id, { kind: 'succeed', ...change })
        else await jobs.apply(job.id, { kind: 'heartbeat', token: job.token, leaseMs: 1000, progress, stage: null })
      }
    },
    stored: async () => (await jobs.documents.get(batchKind, batchKey('a', 'b')))?.value as Batch | undefined,
  }
}

const after = (ms: number) => void vi.setSystemTime(Date.now() + ms)
const pending = {
  id: 'm',
  url: 'u',
  event: 'batch.ended',
  occurredAt: 0,
  attempts: 0,
  lastStatus: null,
  outcome: 'pending' as const,
}
const sample: Batch = {
  app: 'a',
  name: 'b',
  createdAt: 0,
  webhook: null,
  endedAt: null,
  addingUntil: 0,
  requests: {},
  deliveries: [],
}

describe('the record of a batch', () => {
  test('is found by a hash of its name, and its jobs by ids that a repeated request gives again', () => {
    expect(batchKey('a', 'b')).toMatch(/^a\/[0-9a-f]{64}$/)
    expect([batchKind, batchKey('a', 'b')]).toEqual(['batch', `a/${hash('sha256', 'b')}`])
    const id = repeatedId('a', 'k', 0)
    const digest = hash('sha256', '["batch","a","k",0]')
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/)
    // All digits except the two for version and variant.
    const digits = id.replaceAll('-', '')
    expect(digits).toBe(`${digest.slice(0, 12)}8${digest.slice(13, 16)}a${digest.slice(17, 32)}`)
    const others = [
      repeatedId('a', 'k', 1),
      repeatedId('a', 'k', 'batch'),
      repeatedId('b', 'k', 0),
      repeatedId('a', 'l', 0),
    ]
    expect(new Set([id, ...others]).size).toBe(5)
    expect([isOfBatch({ app: 'a', batchName: '' }), isOfBatch({ app: 'a', batchName: null })]).toEqual([true, false])
  })

  test('keeps at its end the unsent messages of earlier ends', () => {
    const sent = { ...pending, id: 'sent', outcome: 'delivered' as const, nextAttemptAt: null }
    const open = { ...pending, id: 'open', nextAttemptAt: 5 }
    const batch = { ...sample, deliveries: [sent, open] }
    const counts = { QUEUED: 0, STARTED: 0, SUCCEEDED: 2, FAILED: 1 }
    expect(ended(batch, { now: 7, counts, message: undefined })).toEqual({
      ...batch,
      endedAt: 7,
      counts,
      deliveries: [open],
    })
    const message = { id: 'new', url: 'u', event: 'batch.ended' }
    expect(ended(batch, { now: 7, counts, message }).deliveries).toEqual([
      open,
      { ...pending, id: 'new', occurredAt: 7, nextAttemptAt: 7 },
    ])
  })

  test('keeps the last hundred requests and twenty messages, however often jobs are added and end', () => {
    let batch = sample
    const message = { id: 'm', url: 'u', event: 'batch.ended' }
    for (let now = 1; now <= 300; now++) {
      // Some databases store the keys in another order.
      const shuffled = Object.fromEntries(
        Object.entries(batch.requests).toSorted(([one], [other]) => (one < other ? -1 : 1)),
      )
      batch = withRequest({ ...batch, requests: shuffled }, { key: `k${now}`, digest: 'd' }, now)
      batch = ended(batch, { now, counts: null, message })
    }
    expect(Object.values(batch.requests).map(({ at }) => at)).toEqual(Array.from({ length: 100 }, (_, n) => 201 + n))
    expect(batch.deliveries.map(({ occurredAt }) => occurredAt)).toEqual(Array.from({ length: 20 }, (_, n) => 281 + n))
    // Among equal times, the new request is kept.
    expect(withRequest({ ...batch }, { key: 'new', digest: 'd' }, 201).requests).toHaveProperty('new')
  })

  test('keeps a request of version 0.1, which has no time, as the oldest', () => {
    const old = { digest: 'd', made: true }
    const first = Object.fromEntries(Array.from({ length: 99 }, (_, n) => [`k${n}`, { ...old, at: n + 1 }]))
    const batch = { ...sample, requests: { ...first, old, older: old } } as Batch
    const { requests } = withRequest(batch, { key: 'new', digest: 'd' }, 500)
    expect(Object.keys(requests).slice(0, 1)).toEqual(['k0'])
    expect(Object.keys(requests)).toHaveLength(100)
  })

  test('counts towards what its application stores', async () => {
    const { all, add } = batches()
    await add()
    expect(await all.bytes('a')).toBeGreaterThan(100)
    expect(await all.bytes('other')).toBe(0)
  })

  test('is checked again while it is open, and when its first message is due', () => {
    const next = (...times: (number | null)[]) => {
      const deliveries = times.map((nextAttemptAt) => ({ ...pending, nextAttemptAt }))
      return nextLookMs({ ...sample, endedAt: 1, deliveries }, 100, 60)
    }
    expect(nextLookMs(sample, 100, 60)).toBe(60)
    expect([next(), next(null), next(130, 120, null), next(90, 120)]).toEqual([null, null, 20, 0])
    const done = { ...pending, outcome: 'delivered' as const, nextAttemptAt: 110 }
    expect(nextLookMs({ ...sample, endedAt: 1, deliveries: [done] }, 100, 60)).toBeNull()
  })
})

describe('the state of a batch', () => {
  test('reads the progress of its running jobs a few at a time: their records may be large', async () => {
    const { all, add, run, jobs } = batches()
    await add({ jobs: Array.from({ length: 30 }, () => sampleJob({ app: 'a', batchName: 'b' })) })
    await run(20, 0.5)
    const list = vi.spyOn(jobs, 'list')
    let turns = 0
    const turn: Turn = (work) => {
      turns++
      return work()
    }
    expect(await all.status('a', 'b', turn)).toMatchObject({ total: 30, progress: 10 / 30 })
    expect(Math.max(...list.mock.calls.map(([{ limit }]) => limit))).toBe(sliceRows)
    expect(turns).toBeGreaterThan(0)
  })

  test('counts its jobs, ended ones as done and running ones by their progress', async () => {
    const { add, run, status } = batches()
    expect(await status()).toBeUndefined()
    const place = { app: 'a', batchName: 'b' }
    await add({ jobs: [1, 2, 3, 4, 5, 6, 7, 8].map(() => sampleJob(place)) })
    await run(2)
    await run(1, 0.5)
    await run(1, 0.25)
    expect(await status()).toEqual({
      name: 'b',
      app: 'a',
      total: 8,
      counts: { QUEUED: 4, STARTED: 2, SUCCEEDED: 2, FAILED: 0 },
      progress: (2 + 0.75) / 8,
      createdAt: start,
      endedAt: null,
    })
  })

  test('is unknown without a record and jobs, and nothing was requested without a key', async () => {
    const { all, status, add } = batches()
    expect(await status()).toBeUndefined()
    await add()
    expect(await all.has('a', { name: 'b', request: null })).toBe(false)
  })

  test('has no times for jobs that were submitted one by one with its name', async () => {
    const { jobs, status, look, all, run } = batches()
    await jobs.create(sampleJob({ app: 'a', batchName: 'b' }))
    expect(await status()).toMatchObject({ total: 1, progress: 0, createdAt: null, endedAt: null })
    await look()
    await all.reopen({ app: 'a', batchName: 'b' })
    expect(await status()).toMatchObject({ total: 1, createdAt: null, endedAt: null })
    await run()
    await look()
    expect(await status()).toMatchObject({ total: 1, progress: 1, createdAt: null, endedAt: null })
  })

  test('has the progress of its one running job', async () => {
    const { add, run, status } = batches()
    await add()
    await run(1, 0.5)
    expect(await status()).toMatchObject({ total: 1, progress: 0.5 })
  })

  test('is done if all its jobs are gone', async () => {
    const { add, jobs, status } = batches()
    const [job] = (await add()) ?? []
    await jobs.apply(job?.id ?? '', { kind: 'delete' })
    expect(await status()).toMatchObject({ total: 0, progress: 1, createdAt: start })
  })

  test('counts failed jobs as done', async () => {
    const { add, jobs, status } = batches()
    await add({
      jobs: [sampleJob({ app: 'a', batchName: 'b' }), sampleJob({ app: 'a', batchName: 'b', status: 'FAILED' })],
    })
    expect(await jobs.count({ statuses: ['FAILED'] })).toBe(1)
    expect(await status()).toMatchObject({ progress: 0.5, counts: { FAILED: 1 } })
  })
})

describe('adding to a batch', () => {
  test('is one span, the parent of its jobs and its messages', async () => {
    const begun: SpanOrder[] = []
    const context = { traceparent: `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01` }
    const tracing: Tracing = { begin: (order) => (begun.push(order), { ...noTracing.begin(order), context }) }
    const { add, stored } = batches({}, { tracing })
    expect(await add()).toMatchObject([{ trace: context }])
    expect(await stored()).toMatchObject({ trace: context })
    const attributes = {
      'messaging.system': 'stemwork',
      'messaging.operation.name': 'submit',
      'messaging.operation.type': 'send',
      'messaging.batch.message_count': 1,
      'stemwork.app': 'a',
      'stemwork.batch': 'b',
    }
    expect(begun).toEqual([{ name: 'submit batch', kind: 'producer', parent: undefined, attributes }])
  })

  test('opens one that had ended and keeps its webhook, its times and its trace', async () => {
    const { add, run, look, stored } = batches()
    const webhook = { url: 'http://127.0.0.1:9/' }
    const first = await add({ webhook })
    expect(first).toMatchObject([{ app: 'a', batchName: 'b', status: 'QUEUED' }])
    expect(await stored()).toEqual({ ...sample, createdAt: start, webhook, trace: null })
    await run()
    after(5)
    await look()
    expect((await stored())?.endedAt).toBe(start + 5)
    const other = { url: 'http://127.0.0.1:8/' }
    await add()
    expect(await stored()).toMatchObject({ createdAt: start, webhook, endedAt: null, addingUntil: 0 })
    await add({ webhook: other })
    expect(await stored()).toMatchObject({ webhook: other })
  })

  test('writes the record with its jobs: no end is announced before they exist, whichever process stalls', async () => {
    const inner = memoryJobs()
    let go = () => {}
    const standing = new Promise<void>((resolve) => (go = resolve))
    const { all, add, look, stored, run, status } = batches({
      ...inner,
      createAll: (...given) => standing.then(() => inner.createAll(...given)),
    })
    const { url, messages } = await receiver(204)
    const adding = add({ webhook: { url } })
    for (const wait of [0, 59_999, 1, 600_000]) {
      after(wait)
      await look()
      expect([await all.tend(), await stored()]).toEqual([0, undefined])
    }
    go()
    await adding
    await look()
    expect(await stored()).toMatchObject({ endedAt: null })
    await run()
    await look()
    await all.tend()
    expect(messages.map(({ data }) => data)).toMatchObject([{ total: 1, counts: { SUCCEEDED: 1 } }])
    expect(await status()).toMatchObject({ total: 1, endedAt: Date.now() })
  })

  test('waits for a node of version 0.1 that adds jobs after the record', async () => {
    const { look, stored, jobs } = batches()
    const value = { ...sample, addingUntil: start + 60_000 }
    await jobs.documents.put({ kind: batchKind, key: batchKey('a', 'b'), value, ttlMs: 900_000 })
    after(59_999)
    await look()
    expect(await stored()).toMatchObject({ endedAt: null })
    after(1)
    await look()
    expect(await stored()).toMatchObject({ endedAt: start + 60_000 })
  })

  test('forgets an end that was not announced, and keeps the message of one whose delivery was tried', async () => {
    const { all, add, look, run, stored } = batches()
    const { url, messages } = await receiver(500, 204)
    await add({ webhook: { url } })
    await run()
    await look()
    await add()
    expect(await stored()).toMatchObject({ endedAt: null, deliveries: [] })
    await run()
    await look()
    expect(await all.tend()).toBe(1)
    await add()
    after(12_000)
    // The message is about the announced end, whatever was added since.
    expect(await all.tend()).toBe(1)
    expect(messages.map(({ data }) => data)).toMatchObject([{ total: 2 }, { total: 2, counts: { SUCCEEDED: 2 } }])
  })

  test('changes nothing when its jobs could not be stored', async () => {
    let failure: Error | undefined
    const inner = memoryJobs()
    const { add, run, look, jobs } = batches({
      ...inner,
      createAll: (...given) => (failure ? Promise.reject(failure) : inner.createAll(...given)),
    })
    await add()
    await run()
    await look()
    const ended = await jobs.documents.get(batchKind, batchKey('a', 'b'))
    const request = { key: 'k', digest: 'd' }
    for (const [error, given] of [
      [new StemworkError('ALREADY_EXISTS', 'There is one.'), {}],
      [new Error('the store is away'), { request }],
      [new StemworkError('QUEUE_FULL', 'There is no room.'), { request }],
    ] as const) {
      failure = error
      await expect(add(given)).rejects.toBe(failure)
      expect(await jobs.documents.get(batchKind, batchKey('a', 'b'))).toEqual(ended)
    }
  })

  test('is done once for a request, even if its first try stored the jobs and broke off', async () => {
    const { add, jobs, stored } = batches()
    const request = { key: 'k', digest: 'd' }
    const given = [sampleJob({ app: 'a', batchName: 'b' })]
    await jobs.createAll(given, {})
    // The jobs exist, so this request is a repetition.
    expect(await add({ request, jobs: given })).toBeUndefined()
    expect((await stored())?.requests).toEqual({ k: { digest: 'd', made: true, at: start } })
    expect(await add({ request })).toBeUndefined()
    expect(await jobs.count({})).toBe(1)
    await expect(add({ request: { key: 'k', digest: 'other' } })).rejects.toMatchObject({
      code: 'IDEMPOTENCY_CONFLICT',
    })
    await add({ request: { key: 'l', digest: 'd' } })
    expect(Object.keys((await stored())?.requests ?? {})).toEqual(['k', 'l'])
    await add()
    expect(Object.keys((await stored())?.requests ?? {})).toEqual(['k', 'l'])
  })

  test('is recognized as a repeat by its jobs once its key is forgotten', async () => {
    const { add, stored } = batches()
    const first = { request: { key: 'k', digest: 'd' }, jobs: [sampleJob({ app: 'a', batchName: 'b' })] }
    await add(first)
    for (let n = 0; n < 100; n++) await add({ request: { key: `later ${n}`, digest: 'd' } })
    expect((await stored())?.requests).not.toHaveProperty('k')
    expect(await add(first)).toBeUndefined()
  })

  test('does not change a batch whose jobs an earlier try has stored', async () => {
    const { add, run, look, jobs, stored } = batches()
    const request = { key: 'k', digest: 'd' }
    await add()
    await run()
    await look()
    const given = [sampleJob({ app: 'a', batchName: 'b' })]
    await jobs.createAll(given, {})
    await add({ request, jobs: given })
    expect(await stored()).toMatchObject({ endedAt: start, requests: { k: { made: true } } })
  })

  test('creates the record of a repeated request only if there is none yet', async () => {
    const { add, jobs } = batches()
    const put = vi.spyOn(jobs.documents, 'put')
    const given = [sampleJob({ app: 'a', batchName: 'b' })]
    await jobs.createAll(given, {})
    await add({ request: { key: 'k', digest: 'd' }, jobs: given })
    expect(put.mock.calls.map(([, condition]) => condition)).toEqual([{ version: 0 }])
  })

  test('is refused after twenty lost races', async () => {
    const inner = memoryJobs()
    let writes = 0
    let losses = 20
    const versions: unknown[] = []
    const { add } = batches({
      ...inner,
      async createAll(...given) {
        versions.push(given[1]?.document?.version)
        return ++writes <= losses ? undefined : inner.createAll(...given)
      },
    })
    await expect(add()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
    expect(writes).toBe(20)
    // Only one process creates a batch that does not exist yet.
    expect(new Set(versions)).toEqual(new Set([0]))
    writes = 0
    losses = 19
    expect(await add()).toHaveLength(1)
  })
})

describe('the end of a batch', () => {
  test('comes with that of its last job, running or waiting', async () => {
    const { add, run, look, stored, jobs } = batches()
    await add({ jobs: [sampleJob({ app: 'a', batchName: 'b' }), sampleJob({ app: 'a', batchName: 'b' })] })
    await run()
    await look()
    expect((await stored())?.endedAt).toBeNull()
    await run(1, 0.5)
    await look()
    expect((await stored())?.endedAt).toBeNull()
    const [running] = await jobs.list({ statuses: ['STARTED'], limit: 1 })
    const end = { outputs: {}, details: {}, retentionMs: 1, messages: [] }
    await jobs.apply(running?.id ?? '', { kind: 'succeed', token: running?.token ?? 0, ...end })
    after(5)
    await look()
    const written = await jobs.documents.get(batchKind, batchKey('a', 'b'))
    expect(written?.value).toMatchObject({ endedAt: start + 5, deliveries: [] })
    // Another check changes nothing.
    after(5)
    await look()
    expect((await jobs.documents.get(batchKind, batchKey('a', 'b')))?.version).toBe(written?.version)
  })

  test('counts all its jobs, even if the last one ends while they are counted', async () => {
    const inner = memoryJobs()
    let onCount = async () => {}
    const { add, run, look, stored, jobs } = batches({
      ...inner,
      async count(...given) {
        const found = await inner.count(...given)
        await onCount()
        return found
      },
    })
    await add({ jobs: [sampleJob({ app: 'a', batchName: 'b' }), sampleJob({ app: 'a', batchName: 'b' })] })
    await run()
    const last = await jobs.claim({ owner: 'w', leaseMs: 1000 })
    const end = { outputs: {}, details: {}, retentionMs: 1, messages: [] }
    onCount = async () => void (await inner.apply(last?.id ?? '', { kind: 'succeed', token: last?.token ?? 0, ...end }))
    await look()
    await look()
    expect(await stored()).toMatchObject({ endedAt: start, counts: { SUCCEEDED: 2 } })
  })

  test('is given up after twenty lost races', async () => {
    const { add, run, look, jobs } = batches()
    await add()
    await run()
    const put = vi.spyOn(jobs.documents, 'put').mockResolvedValue(undefined)
    await expect(look()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true })
    expect(put).toHaveBeenCalledTimes(20)
  })

  test('is undone by a single running or waiting job', async () => {
    const { all, add, run, look, stored, jobs } = batches()
    await add()
    await run()
    await look()
    await jobs.createAll([sampleJob({ app: 'a', batchName: 'b' }), sampleJob({ app: 'a', batchName: 'b' })], {})
    await run(1, 0.5)
    await all.reopen({ app: 'a', batchName: 'b' })
    expect((await stored())?.endedAt).toBeNull()
  })

  test('is undone when one of its jobs waits again', async () => {
    const { all, add, run, look, stored, jobs } = batches()
    const version = async () => (await jobs.documents.get(batchKind, batchKey('a', 'b')))?.version
    await add()
    const open = await version()
    await all.reopen({ app: 'a', batchName: 'b' })
    expect(await version()).toBe(open)
    await run()
    await look()
    const end = await version()
    // The batch was reopened, and has ended again meanwhile.
    await all.reopen({ app: 'a', batchName: 'b' })
    expect(await version()).toBe(end)
    await jobs.create(sampleJob({ app: 'a', batchName: 'b' }))
    await all.reopen({ app: 'a', batchName: 'b' })
    expect((await stored())?.endedAt).toBeNull()
  })

  test('comes again when a job ends after its retry by a process that died', async () => {
    const { all, add, run, look, stored, jobs } = batches()
    await add({ webhook: { url: 'http://127.0.0.1:9/' } })
    await run()
    await look()
    const { job } = await jobs.create(sampleJob({ app: 'a', batchName: 'b' }))
    after(5)
    await run()
    await look()
    expect((await stored())?.endedAt).toBe(start)
    const ended = await jobs.get(job.id)
    for (let looks = 0; looks < 2; looks++)
      await all.look({ app: 'a', batchName: 'b', completedAt: ended?.completedAt })
    expect(await stored()).toMatchObject({ endedAt: start + 5, counts: { SUCCEEDED: 2 } })
    expect((await stored())?.deliveries).toHaveLength(2)
  })

  test('is found by the next process that checks, after a minute', async () => {
    const { url, messages } = await receiver(204)
    const { all, add, run, stored } = batches()
    await add({ webhook: { url } })
    await run()
    after(59_999)
    expect(await all.tend()).toBe(0)
    expect((await stored())?.endedAt).toBeNull()
    after(1)
    expect(await all.tend()).toBe(1)
    expect((await stored())?.endedAt).toBe(start + 60_000)
    expect(messages.length).toBe(1)
  })

  test('is checked for every minute while the batch is open', async () => {
    const { all, add, jobs } = batches()
    await add()
    const isDue = async () => (await jobs.documents.due(batchKind, 9)).length
    after(60_000)
    expect(await isDue()).toBe(1)
    await all.tend()
    expect(await isDue()).toBe(0)
    after(60_000)
    expect(await isDue()).toBe(1)
  })

  test('and the batch itself expire after the time for which jobs are kept', async () => {
    const { add, run, look, jobs } = batches()
    await add()
    await run()
    await look()
    after(499_999)
    expect(await jobs.documents.get(batchKind, batchKey('a', 'b'))).toBeDefined()
    after(1)
    expect(await jobs.documents.get(batchKind, batchKey('a', 'b'))).toBeUndefined()
  })
})

describe('the message about the end of a batch', () => {
  test('is sent once, and again after growing waits while the receiver refuses it', async () => {
    const { url, messages } = await receiver(500, 503, 200)
    const { all, add, run, look, stored } = batches()
    await add({ webhook: { url } })
    await run()
    await look()
    const delivery = async () => (await stored())?.deliveries[0]
    expect(await all.tend()).toBe(1)
    expect(await delivery()).toMatchObject({ attempts: 1, outcome: 'pending', lastStatus: 500 })
    expect((await delivery())?.nextAttemptAt).toBeGreaterThanOrEqual(start + 10_000)
    // The delay is extended by up to a fifth.
    expect((await delivery())?.nextAttemptAt).toBeLessThanOrEqual(start + 12_000)
    after(9_999)
    expect(await all.tend()).toBe(0)
    after(2_001)
    expect(await all.tend()).toBe(1)
    expect(await delivery()).toMatchObject({ attempts: 2, outcome: 'pending', lastStatus: 503 })
    after(120_000)
    expect(await all.tend()).toBe(1)
    expect(await delivery()).toMatchObject({ attempts: 3, outcome: 'delivered', lastStatus: 200, nextAttemptAt: null })
    after(400_000)
    expect(await all.tend()).toBe(0)
    expect(new Set(messages.map(({ id }) => id)).size).toBe(1)
    expect(messages.map(({ data }) => data)).toEqual(
      Array.from({ length: 3 }, () => ({
        name: 'b',
        total: 1,
        counts: { QUEUED: 0, STARTED: 0, SUCCEEDED: 1, FAILED: 0 },
      })),
    )
  })

  test('waits a second if all lanes of its application are in use', async () => {
    const { url, messages } = await receiver(204)
    const { all, sender, add, run, look, stored } = batches()
    await add({ webhook: { url } })
    await run()
    await look()
    let release = () => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    const running: Promise<unknown>[] = []
    while (sender.lanes.hasRoom('a')) running.push(sender.lanes.run('a', () => held))
    expect(await all.tend()).toBe(0)
    expect((await stored())?.deliveries).toMatchObject([{ attempts: 0, nextAttemptAt: start + 1000 }])
    release()
    await Promise.all(running)
    after(1000)
    expect(await all.tend()).toBe(1)
    expect(messages).toHaveLength(1)
  })

  test('is due again if the store fails, as is a batch that the store still reports as due', async () => {
    const { url, messages } = await receiver(204)
    const { all, add, run, look, jobs, lines } = batches()
    await add({ webhook: { url } })
    await run()
    await look()
    const put = vi.spyOn(jobs.documents, 'put').mockRejectedValue(new Error('away'))
    const due = vi.spyOn(jobs.documents, 'due')
    expect(await all.tend()).toBe(0)
    expect(due).toHaveBeenCalledTimes(2)
    expect(lines).toMatchObject([{ level: 'warn', fields: { app: 'a', batch: 'b' } }])
    put.mockRestore()
    expect(await all.tend()).toBe(1)
    expect(messages).toHaveLength(1)
  })

  test('is left to the next check by an error of the store, which ends the check', async () => {
    const { all, add, run, look, jobs, lines } = batches()
    await add({ webhook: { url: 'http://127.0.0.1:9/' } })
    await run()
    await look()
    const away = new StemworkError('STORE_UNAVAILABLE', 'The store is away.')
    vi.spyOn(jobs.documents, 'get').mockRejectedValue(away)
    await expect(all.tend()).rejects.toBe(away)
    expect(lines).toEqual([])
  })

  test('is sent although the record of another batch, which is due before it, cannot be read', async () => {
    const { url, messages } = await receiver(204)
    const { all, add, run, look, jobs, lines } = batches()
    const key = batchKey('a', 'damaged')
    await jobs.documents.put({ kind: batchKind, key, value: { app: 'a' }, ttlMs: 100_000, dueInMs: 0 })
    after(1)
    await add({ webhook: { url } })
    await run()
    await look()
    expect(await all.tend()).toBe(1)
    expect(messages).toHaveLength(1)
    expect(lines).toMatchObject([{ level: 'error', fields: { key } }])
  })

  test('is sent by the time of the store, which is read again', async () => {
    const { url } = await receiver(204)
    const inner = memoryJobs()
    let time = start
    const { all, jobs, stored } = batches({
      ...inner,
      traits: { ...inner.traits, scope: 'shared' },
      time: async () => time,
    })
    const delivery = { ...pending, url, nextAttemptAt: start + 50 }
    const value = { ...sample, endedAt: start, deliveries: [delivery] }
    await jobs.documents.put({ kind: batchKind, key: batchKey('a', 'b'), value, ttlMs: 1000, dueInMs: 0 })
    expect(await all.tend()).toBe(0)
    // The machine was suspended.
    time = start + 50
    expect(await all.tend()).toBe(1)
    expect((await stored())?.deliveries).toMatchObject([{ outcome: 'delivered' }])
  })

  test('is given up after its last attempt, which is logged for the operator', async () => {
    const { url } = await receiver(500)
    const { all, add, run, look, stored, lines } = batches()
    await add({ webhook: { url } })
    await run()
    await look()
    for (const wait of [0, 12_000]) {
      after(wait)
      expect(await all.tend()).toBe(1)
      expect(lines.filter(({ level }) => level === 'warn')).toEqual([])
    }
    after(120_000)
    expect(await all.tend()).toBe(1)
    expect((await stored())?.deliveries).toMatchObject([{ attempts: 3, outcome: 'given_up', nextAttemptAt: null }])
    expect(lines.filter(({ level }) => level === 'warn')).toMatchObject([
      { fields: { app: 'a', batch: 'b', status: 500 } },
    ])
  })

  test('is sent when it is due; others, or one whose last attempt is in progress, are not', async () => {
    const { url, messages } = await receiver(204)
    const { all, jobs } = batches()
    const message = { ...pending, url }
    const deliveries = [
      { ...message, id: 'done', outcome: 'delivered', nextAttemptAt: null },
      { ...message, id: 'last', nextAttemptAt: null },
      { ...message, id: 'later', nextAttemptAt: start + 1 },
      { ...message, id: 'now', nextAttemptAt: start },
    ]
    const value = { ...sample, endedAt: start, deliveries }
    await jobs.documents.put({ kind: batchKind, key: batchKey('a', 'b'), value, ttlMs: 1000, dueInMs: 0 })
    expect(await all.tend()).toBe(1)
    expect(messages.map(({ id }) => id)).toEqual(['now'])
  })

  test('is sent by one of two processes that find it due', async () => {
    const { url, messages } = await receiver(204)
    const { all, add, run, look, jobs, stored } = batches()
    await add({ webhook: { url } })
    await run()
    await look()
    const due = jobs.documents.due.bind(jobs.documents)
    // The other process sends the message after this one has read the due batches.
    jobs.documents.due = async (...given) => {
      const found = await due(...given)
      jobs.documents.due = due
      await all.tend()
      return found
    }
    expect(await all.tend()).toBe(0)
    expect(messages.length).toBe(1)
    expect((await stored())?.deliveries).toMatchObject([{ attempts: 1, outcome: 'delivered' }])
  })

  test('is not sent after the engine has closed', async () => {
    const { url, messages } = await receiver(204)
    const { all, sender, add, run, look } = batches()
    await add({ webhook: { url } })
    await run()
    await look()
    sender.close()
    expect(await all.tend()).toBe(0)
    expect(messages).toEqual([])
  })
})
