import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  cancel,
  canceledError,
  fail,
  heartbeat,
  requeue,
  sampleError,
  sampleJob,
  sampleOutputs,
  succeed,
} from '../../src/contract/job-samples.js'
import { memoryJobs } from '../../src/adapters/memory.js'
import { sqliteStores, type SqliteStores } from '../../src/adapters/stores/sqlite/index.js'
import { deliverableAt, lapsesAt, overdueAt, removableAt, waitingSince } from '../../src/core/engine/job/due-times.js'
import type { JobError, JobRecord } from '../../src/core/engine/job/job.js'
import { claim, isClaimable, type JobChange, transition } from '../../src/core/engine/job/transitions.js'
import type { JobStore } from '../../src/core/engine/ports/job-store.js'
import { settableClock } from '../contract/stores/settable-clock.js'
import { followsTheRules, steps, type Subject } from './job-model.js'
import { temporaryFolder } from '../temporary-folder.js'

describe('any order of claims, heartbeats, ends, retries, cancels, deletes and lapsed leases follows the rules', () => {
  test('in the state machine itself', async () => {
    await fc.assert(
      fc.asyncProperty(steps, (sequence) => followsTheRules(pureSubject(), sequence)),
      { numRuns: 500 },
    )
  })

  test('in the memory store', async () => {
    const check = fc.asyncProperty(steps, (sequence) => {
      const { clock, advance } = settableClock()
      return followsTheRules(storeSubject(memoryJobs({ clock }), advance), sequence)
    })
    await fc.assert(check, { numRuns: 300 })
  })

  describe('in the SQLite store', () => {
    const directory = temporaryFolder()
    let stores: SqliteStores
    const { clock, advance } = settableClock()

    beforeAll(async () => {
      stores = sqliteStores({ path: join(directory, 'jobs.db'), clock })
    })
    afterAll(async () => {
      stores.close()
    })

    test('as well', async () => {
      const check = fc.asyncProperty(steps, async (sequence) => {
        await followsTheRules(storeSubject(stores.jobs, advance), sequence)
        // Claims of the next sequence must not find these jobs.
        for (const job of await stores.jobs.list({ limit: 10 })) await stores.jobs.apply(job.id, { kind: 'delete' })
      })
      await fc.assert(check, { numRuns: 60 })
    })
  })
})

describe('the times that stores index', () => {
  test('a job is claimable exactly from its claimable time on', () => {
    const state = fc.record({
      status: fc.constantFrom('QUEUED' as const, 'STARTED' as const, 'SUCCEEDED' as const, 'FAILED' as const),
      notBefore: fc.nat(100),
      dueAt: fc.option(fc.nat(100)),
      lease: fc.option(
        fc.record({ owner: fc.constant('w'), token: fc.constant(1), nonce: fc.constant('n'), until: fc.nat(100) }),
      ),
      deleted: fc.boolean(),
    })
    fc.assert(
      fc.property(state, fc.nat(100), (fields, now) => {
        const job = sampleJob(fields)
        const at = waitingSince(job) ?? lapsesAt(job)
        expect(at !== null && at <= now).toBe(isClaimable(job, now))
      }),
    )
  })

  test('results are removable from their expiry on, until they are removed or the job is deleted', () => {
    const running = claim(sampleJob(), { owner: 'w', leaseMs: 1 }, 5) as JobRecord
    const done = transition(running, succeed(running, { retentionMs: 10 }), 20) as JobRecord
    expect(removableAt(running)).toBeNull()
    expect(removableAt(done)).toBe(30)
    expect(removableAt(transition(running, fail(1), 20) as JobRecord)).toBeNull()
    expect(removableAt(transition(done, { kind: 'expire' }, 30) as JobRecord)).toBeNull()
    expect(removableAt(transition(done, { kind: 'delete' }, 30) as JobRecord)).toBeNull()
  })

  test('the earliest pending message decides when a job is deliverable', () => {
    const message = { url: 'u', event: 'e', occurredAt: 0, attempts: 0, lastStatus: null }
    const deliveries: JobRecord['deliveries'] = [
      { ...message, id: 'a', outcome: 'delivered', nextAttemptAt: 1 },
      { ...message, id: 'b', outcome: 'pending', nextAttemptAt: 9 },
      { ...message, id: 'c', outcome: 'pending', nextAttemptAt: 4 },
      { ...message, id: 'd', outcome: 'pending', nextAttemptAt: null },
    ]
    expect(deliverableAt(sampleJob({ deliveries }))).toBe(4)
    expect(deliverableAt(sampleJob({ deliveries: deliveries.slice(0, 1) }))).toBeNull()
    expect(deliverableAt(sampleJob({ deliveries: deliveries.slice(3) }))).toBeNull()
    expect(deliverableAt(sampleJob({ deliveries: deliveries.toReversed() }))).toBe(4)
    expect(deliverableAt(sampleJob({ deliveries, deleted: true }))).toBeNull()
  })

  test('only a job that waits can be overdue, and only one that runs can lapse', () => {
    const job = sampleJob({ deadline: 7, createdAt: 3, notBefore: 2 })
    expect([overdueAt(job), waitingSince(job), waitingSince({ ...job, notBefore: 4 })]).toEqual([7, 3, 4])
    expect(waitingSince({ ...job, notBefore: 4, dueAt: 9 })).toBe(9)
    expect(overdueAt({ ...job, status: 'STARTED' })).toBeNull()
    expect([overdueAt({ ...job, deleted: true }), waitingSince({ ...job, deleted: true })]).toEqual([null, null])
    const lease = { owner: 'w', token: 1, nonce: '', until: 9 }
    const running = sampleJob({ status: 'STARTED', lease })
    expect([lapsesAt(running), lapsesAt({ ...running, lease: null })]).toEqual([9, 0])
    expect([lapsesAt({ ...running, deleted: true }), lapsesAt({ ...running, status: 'FAILED' })]).toEqual([null, null])
    const results = sampleJob({ status: 'SUCCEEDED', outputs: {}, expiresAt: 5 })
    expect([removableAt(results), removableAt({ ...results, deleted: true })]).toEqual([5, null])
    expect(removableAt({ ...results, status: 'STARTED' })).toBeNull()
  })
})

describe('each change writes exactly its fields:', () => {
  const lease = { owner: 'w', token: 3, nonce: 'n', until: 900 }
  const attempt = { token: 3, worker: 'w', startedAt: 50, endedAt: null, outcome: 'running' as const, reason: null }
  const held = { token: 3, nonce: 'n' }
  const running = sampleJob({
    status: 'STARTED',
    startedAt: 50,
    progress: 0.4,
    stage: 'work',
    token: 3,
    lease,
    attempts: 2,
    lapses: 1,
    shutdownRequeues: 4,
    failure: 'earlier',
    history: [attempt],
    idempotency: { key: 'k', digest: 'd' },
  })
  const messages = [{ id: 'm', url: 'u', event: 'e' }]
  const delivery = { id: 'm', url: 'u', event: 'e', occurredAt: 100, attempts: 0, nextAttemptAt: 100, lastStatus: null }
  const done = {
    lease: null,
    stage: null,
    completedAt: 100,
    expiresAt: 160,
    deliveries: [{ ...delivery, outcome: 'pending' }],
    settlement: expect.objectContaining({ endedAt: 100, jobId: expect.any(String) }) as unknown,
  }
  /** The last worker was lost. */
  const lapsed = { lease: { ...lease, until: 90 } }
  const lost = { ...done, history: [{ ...attempt, endedAt: 90, outcome: 'lapsed' }] }
  const past = (outcome: string, reason: string | null = null) => [{ ...attempt, endedAt: 100, outcome, reason }]
  const after = (job: JobRecord, change: JobChange) => transition(job, change, 100)

  test('a claim', () => {
    const queued = sampleJob({ progress: 0.4, stage: 'work', token: 2, attempts: 1, lapses: 1 })
    const first = claim(queued, { owner: 'w', leaseMs: 800, nonce: 'n' }, 100)
    const begun = { ...attempt, startedAt: 100 }
    expect(first).toEqual({
      ...queued,
      status: 'STARTED',
      startedAt: 100,
      progress: 0,
      stage: null,
      token: 3,
      lease,
      attempts: 2,
      history: [begun],
    })
    // The lease has expired: that counts as a lapse, not as an attempt.
    const again = first && claim(first, { owner: 'v', leaseMs: 1 }, 900)
    expect(again).toEqual({
      ...first,
      token: 4,
      lease: { owner: 'v', token: 4, nonce: '', until: 901 },
      lapses: 2,
      history: [
        { ...begun, endedAt: 900, outcome: 'lapsed' },
        { ...begun, token: 4, worker: 'v', startedAt: 900 },
      ],
    })
    expect(claim({ ...running, lease: null }, { owner: 'v', leaseMs: 1 }, 70)?.history[0]).toMatchObject({
      endedAt: 70,
    })
    expect(
      claim({ ...running, lease: { ...lease, until: 60 } }, { owner: 'v', leaseMs: 1 }, 70)?.history[0],
    ).toMatchObject({
      endedAt: 60,
    })
  })

  test('a job whose finished steps are not repeated keeps its progress until it ends', () => {
    const step = { version: '', state: 'done', startedAt: 60, endedAt: 70, attempts: 1, until: null } as const
    const stepped = { ...running, steps: [{ ...step, name: 'one', value: 1, files: {}, error: null }] }
    const ends: JobChange[] = [
      { kind: 'suspend', ...held, waitsFor: [] },
      { kind: 'requeue', ...held, delayMs: 0, onShutdown: false, failure: 'why' },
      { kind: 'preempt', ...held },
    ]
    for (const end of ends) {
      const queued = after(stepped, end)
      expect([queued?.progress, queued && claim(queued, { owner: 'w', leaseMs: 1 }, 200)?.progress]).toEqual([0.4, 0.4])
    }
    expect(claim({ ...stepped, lease: { ...lease, until: 60 } }, { owner: 'w', leaseMs: 1 }, 70)?.progress).toBe(0.4)
    expect(after({ ...stepped, status: 'FAILED', lease: null }, { kind: 'retry' })?.progress).toBe(0)
  })

  test('an attempt begins with the progress up to which work was kept', () => {
    const beat: JobChange = { kind: 'heartbeat', ...held, leaseMs: 60, progress: 0.5, stage: 'write' }
    const kept = after(after(running, { ...beat, kept: true }) ?? running, { ...beat, progress: 0.6 }) ?? running
    const ends: JobChange[] = [
      { kind: 'requeue', ...held, delayMs: 0, onShutdown: true },
      { kind: 'preempt', ...held },
    ]
    const next = [kept, ...ends.map((end) => after(kept, end))].map(
      (job) => job && claim(job, { owner: 'w', leaseMs: 1 }, 200)?.progress,
    )
    expect([kept.progress, ...next]).toEqual([0.6, 0.5, 0.5, 0.5])
    const failed = (code: JobError['code']) => ({ ...kept, status: 'FAILED' as const, error: { ...sampleError, code } })
    const retried = (['INTERNAL_ERROR', 'BAD_INPUT'] as const).map((code) => after(failed(code), { kind: 'retry' }))
    expect(retried.map((job) => [job?.progress, job?.keptProgress])).toEqual([
      [0, 0.5],
      [0, 0],
    ])
  })

  test('a job is claimable when it waits and is due, or its lease is over', () => {
    const claimable = (fields: Partial<JobRecord>) => isClaimable(sampleJob(fields), 100)
    expect([99, 100, 101].map((notBefore) => claimable({ notBefore }))).toEqual([true, true, false])
    expect([99, 100, 101].map((dueAt) => claimable({ dueAt }))).toEqual([true, true, false])
    expect(claimable({ dueAt: 50, notBefore: 101 })).toBe(false)
    const until = (at: number) => claimable({ status: 'STARTED', lease: { ...lease, until: at } })
    expect([99, 100, 101].map(until)).toEqual([true, true, false])
    expect(claimable({ status: 'STARTED', lease: null, notBefore: 200 })).toBe(true)
    expect([claimable({ deleted: true }), claimable({ status: 'FAILED' }), claimable({ status: 'SUCCEEDED' })]).toEqual(
      [false, false, false],
    )
  })

  test('a heartbeat', () => {
    const beat: JobChange = { kind: 'heartbeat', ...held, leaseMs: 60, progress: 0.7, stage: 'write' }
    const renewed = { ...running, progress: 0.7, stage: 'write', lease: { ...lease, until: 160 } }
    expect(after(running, beat)).toEqual(renewed)
    expect(after(running, { ...beat, progress: 0.1, stage: null })).toEqual({ ...renewed, progress: 0.4, stage: null })
    expect(after(running, { ...beat, kept: true })).toEqual({
      ...renewed,
      attempts: 1,
      lapses: 0,
      keptProgress: 0.7,
    })
    expect(after({ ...running, attempts: 0 }, { ...beat, kept: true })?.attempts).toBe(0)
    const used = { audioSeconds: 0, bytes: 5, processorSeconds: 2 }
    const told = after({ ...running, processorSeconds: 1 }, { ...beat, used })
    expect(told?.lease).toEqual({ ...renewed.lease, used })
    // The usage reported by a lost worker counts, too.
    const next = told && claim(told, { owner: 'v', leaseMs: 1 }, 160)
    expect([next?.processorSeconds, next?.lease?.used]).toEqual([3, undefined])
    expect(transition(told ?? running, cancel({}), 160)?.settlement).toMatchObject({ bytes: 5, processorSeconds: 3 })
  })

  test('a success', () => {
    const outputs = sampleOutputs(running.id, 3)
    const details = { model: 'm' }
    expect(after(running, { kind: 'succeed', ...held, outputs, details, retentionMs: 60, messages })).toEqual({
      ...running,
      ...done,
      status: 'SUCCEEDED',
      progress: 1,
      failure: null,
      history: past('succeeded'),
      outputs,
      details,
    })
  })

  test('what attempts used that did not end the job is in the entry of its end, and no more after a retry', () => {
    const [again, suspended] = [
      after(running, { kind: 'requeue', ...held, delayMs: 0, onShutdown: true, processorSeconds: 2 }),
      after(running, { kind: 'suspend', ...held, waitsFor: [], processorSeconds: 3 }),
    ]
    expect([again?.processorSeconds, suspended?.processorSeconds]).toEqual([2, 3])
    expect(after(running, { kind: 'preempt', ...held, processorSeconds: 4 })?.processorSeconds).toBe(4)
    const used = { processorSeconds: 0.5 }
    const failed = after(
      { ...running, processorSeconds: 2 },
      { kind: 'fail', ...held, error: sampleError, used, retentionMs: 60, messages },
    )
    expect(failed?.settlement?.processorSeconds).toBe(2.5)
    expect(after(failed!, { kind: 'retry' })?.processorSeconds).toBe(0)
  })

  test('an end has the entry of the ledger: what was used, and how it ended', () => {
    const used = { audioSeconds: 3, bytes: 4, processorSeconds: 0.5 }
    const success: JobChange = {
      kind: 'succeed',
      ...held,
      outputs: {},
      details: { model: { name: 'm' } },
      used,
      retentionMs: 60,
      messages,
    }
    const entry = {
      id: `${running.id}/0`,
      jobId: running.id,
      app: running.app,
      workflow: running.workflow,
      endedAt: 100,
    }
    expect(after(running, success)?.settlement).toEqual({
      ...entry,
      ...used,
      model: 'm',
      priority: running.priority,
      result: 'SUCCEEDED',
      error: null,
      reason: null,
      runMs: 50,
    })
    const change: JobChange = { kind: 'fail', ...held, error: sampleError, retentionMs: 60, messages }
    const failed = after({ ...running, retries: 2 }, change)
    expect(failed?.settlement).toMatchObject({
      id: `${running.id}/2`,
      bytes: 0,
      model: null,
      result: 'FAILED',
      error: 'INTERNAL_ERROR',
    })
    expect(after(failed as JobRecord, { kind: 'retry' })?.settlement).toBeNull()
  })

  test('an end keeps the last twenty messages: a client may cancel and retry a job any number of times', () => {
    let job = running
    for (let n = 0; n < 30; n++) {
      const message = { id: `m${n}`, url: 'u', event: 'e' }
      job = after({ ...job, status: 'QUEUED', lease: null }, cancel({ retentionMs: 60, messages: [message] }))!
      job = after(job, { kind: 'retry' })!
    }
    expect(job.deliveries.map(({ id }) => id)).toEqual(Array.from({ length: 20 }, (_, n) => `m${10 + n}`))
  })

  test('a failure', () => {
    const change: JobChange = { kind: 'fail', ...held, error: sampleError, retentionMs: 60, messages }
    const failed = { ...running, ...done, status: 'FAILED', error: sampleError }
    expect(after(running, change)).toEqual({ ...failed, history: past('failed', sampleError.message) })
    expect(after(running, { ...change, failure: 'why' })).toEqual({
      ...failed,
      failure: 'why',
      history: past('failed', 'why'),
    })
    const old = { ...delivery, id: 'old', outcome: 'delivered' as const }
    expect(after({ ...running, deliveries: [old] }, change)?.deliveries).toEqual([old, ...done.deliveries])
  })

  test('a hand-back and another attempt', () => {
    const queued = { ...running, status: 'QUEUED', lease: null, progress: 0, stage: null, dueAt: 107 }
    expect(after(running, { kind: 'requeue', ...held, delayMs: 7, onShutdown: false, failure: 'why' })).toEqual({
      ...queued,
      failure: 'why',
      history: past('requeued', 'why'),
    })
    expect(after(running, { kind: 'requeue', ...held, delayMs: 7, onShutdown: true })).toEqual({
      ...queued,
      attempts: 1,
      shutdownRequeues: 5,
      history: past('handed_back'),
    })
  })

  test('a cancellation', () => {
    const change = cancel({ retentionMs: 60, messages })
    expect(after(running, change)).toEqual({ ...running, cancelRequested: true })
    expect(after({ ...running, ...lapsed }, change)).toEqual({
      ...running,
      ...lost,
      status: 'FAILED',
      error: canceledError,
    })
    const queued = sampleJob()
    expect(after(queued, change)).toEqual({ ...queued, ...done, status: 'FAILED', error: canceledError })
    expect(after({ ...queued, status: 'SUCCEEDED' }, change)).toBeUndefined()
    expect(after({ ...running, lease: null }, change)?.history).toEqual(past('lapsed'))
    expect(after({ ...queued, deleted: true }, change)).toBeUndefined()
    const gone = { deleted: true, token: running.token + 1, idempotency: null }
    const forced = { ...running, ...done, status: 'FAILED', error: canceledError, ...gone }
    expect(after(running, { ...change, force: true })).toEqual({
      ...forced,
      history: past('failed', canceledError.message),
    })
    expect(after({ ...running, status: 'SUCCEEDED' }, { ...change, force: true })).toBeUndefined()
    // A job that never ran ends without an entry.
    expect(after(queued, { ...change, force: true })).toEqual({ ...queued, ...gone, token: queued.token + 1 })
  })

  test('a missed deadline', () => {
    const change: JobChange = { ...cancel({ retentionMs: 60, messages }), kind: 'miss' }
    const queued = sampleJob({ deadline: 100 })
    expect(after(queued, change)).toEqual({ ...queued, ...done, status: 'FAILED', error: canceledError })
    const late = { ...running, deadline: 100 }
    for (const other of [{ deadline: 101 }, { deadline: null }, { deleted: true }, { status: 'SUCCEEDED' as const }])
      for (const job of [queued, late]) expect(after({ ...job, ...other }, change)).toBeUndefined()
    expect(after(late, change)).toBeUndefined()
    expect(after({ ...late, ...lapsed }, change)).toEqual({ ...late, ...lost, status: 'FAILED', error: canceledError })
  })

  test('a retry', () => {
    const error = sampleError
    const failed = sampleJob({
      ...running,
      status: 'FAILED',
      lease: null,
      stage: null,
      error,
      completedAt: 90,
      expiresAt: 150,
    })
    const queued = {
      ...failed,
      status: 'QUEUED',
      progress: 0,
      error: null,
      completedAt: null,
      expiresAt: null,
      attempts: 0,
      lapses: 0,
      shutdownRequeues: 0,
      retries: 1,
      dueAt: 100,
    }
    expect(after(failed, { kind: 'retry' })).toEqual(queued)
    expect(after({ ...failed, cancelRequested: true }, { kind: 'retry', quota: {} })).toEqual({
      ...queued,
      metered: true,
    })
    expect(after({ ...failed, metered: true, notBefore: 130 }, { kind: 'retry' })).toMatchObject({
      metered: true,
      notBefore: 130,
      dueAt: 100,
    })
    expect(after({ ...failed, deadline: 101 }, { kind: 'retry' })).toMatchObject({ status: 'QUEUED' })
    for (const other of [{ deadline: 100 }, { deleted: true }, { status: 'SUCCEEDED' as const }])
      expect(after({ ...failed, ...other }, { kind: 'retry' })).toBeUndefined()
  })

  test('a delete and the removal of results', () => {
    expect(after(running, { kind: 'delete' })).toEqual({
      ...running,
      deleted: true,
      lease: null,
      token: 4,
      idempotency: null,
    })
    expect(after({ ...running, deleted: true }, { kind: 'delete' })).toBeUndefined()
    const ended = sampleJob({ status: 'SUCCEEDED' })
    expect(after(ended, { kind: 'expire' })).toEqual({ ...ended, expired: true })
    for (const other of [{ deleted: true }, { expired: true }, { status: 'STARTED' as const }])
      expect(after({ ...ended, ...other }, { kind: 'expire' })).toBeUndefined()
  })

  test('an attempt at a webhook message and its outcome', () => {
    const first = { ...delivery, id: 'a', outcome: 'pending' as const }
    const second = { ...delivery, id: 'b', outcome: 'pending' as const, attempts: 1 }
    const job = sampleJob({ deliveries: [first, second] })
    const begin = { kind: 'beginDelivery', deliveryId: 'b', attempts: 1, retryInMs: 9 } as const
    expect(after(job, begin)).toEqual({ ...job, deliveries: [first, { ...second, attempts: 2, nextAttemptAt: 109 }] })
    expect(after(job, { ...begin, retryInMs: null })?.deliveries[1]).toMatchObject({ nextAttemptAt: null })
    expect(after(job, { ...begin, attempts: 0 })).toBeUndefined()
    expect(after(job, { ...begin, deliveryId: 'c' })).toBeUndefined()
    const end = { kind: 'endDelivery', deliveryId: 'b', outcome: 'delivered', status: 204 } as const
    const ended = { ...second, outcome: 'delivered' as const, lastStatus: 204, nextAttemptAt: null }
    expect(after(job, end)).toEqual({ ...job, deliveries: [first, ended] })
    expect(after({ ...job, deliveries: [first, ended] }, end)).toBeUndefined()
    expect(after(job, { ...end, outcome: 'pending', status: 500 })).toEqual({
      ...job,
      deliveries: [first, { ...second, lastStatus: 500 }],
    })
  })

  test('none of them for another claim, or for a job that no longer runs', () => {
    const beat: JobChange = { kind: 'heartbeat', ...held, leaseMs: 60, progress: 0.7, stage: 'write' }
    expect(after(running, beat)).toBeDefined()
    for (const other of [{ token: 2 }, { nonce: 'other' }, { nonce: undefined }])
      expect(after(running, { ...beat, ...other })).toBeUndefined()
    for (const other of [{ deleted: true }, { status: 'QUEUED' as const }, { lease: null }])
      expect(after({ ...running, ...other }, beat)).toBeUndefined()
    expect(after({ ...running, lease: { ...lease, nonce: '' } }, { ...beat, nonce: undefined })).toBeDefined()
  })
})

test('a transition does not change the given record', () => {
  const queued = sampleJob()
  const running = claim(freeze(queued), { owner: 'w', leaseMs: 1 }, 0) as JobRecord
  for (const change of [heartbeat(1), succeed(running), fail(1), requeue(1), { kind: 'delete' as const }]) {
    const before = structuredClone(running)
    expect(transition(freeze(running), change, 5)).toBeDefined()
    expect(running).toEqual(before)
  }
})

describe('the history of a job', () => {
  const claimed = (job: JobRecord, at: number, owner: string) => {
    const next = claim(job, { owner, leaseMs: 1000 }, at)
    if (!next) throw new Error('not claimable')
    return next
  }
  const applied = (job: JobRecord, change: Parameters<typeof transition>[1], at: number) => {
    const next = transition(job, change, at)
    if (!next) throw new Error('does not apply')
    return next
  }

  test('has each attempt with its worker, its times and why it ended', () => {
    let job: JobRecord = { ...sampleJob(), notBefore: 0 }
    job = claimed(job, 100, 'a')
    expect(job.history).toEqual([
      { token: 1, worker: 'a', startedAt: 100, endedAt: null, outcome: 'running', reason: null },
    ])
    const failure =
      'StemworkError [INTERNAL_ERROR]: It failed.\n    at run (x.js:1:1)\ncaused by Error: no ink\n    at write ' +
      '(y.js:2:2)'
    job = applied(job, { kind: 'requeue', token: 1, delayMs: 0, onShutdown: false, failure }, 200)
    job = claimed(job, 300, 'b')
    // The worker is lost: only the lease shows the end of the attempt.
    job = claimed(job, 2000, 'c')
    job = applied(job, { kind: 'requeue', token: 3, delayMs: 0, onShutdown: true }, 2100)
    job = claimed(job, 2200, 'd')
    job = applied(job, succeed(job), 2300)
    expect(
      job.history.map(({ token, worker, startedAt, endedAt, outcome }) => [token, worker, startedAt, endedAt, outcome]),
    ).toEqual([
      [1, 'a', 100, 200, 'requeued'],
      [2, 'b', 300, 1300, 'lapsed'],
      [3, 'c', 2000, 2100, 'handed_back'],
      [4, 'd', 2200, 2300, 'succeeded'],
    ])
    expect(job.history.map(({ reason }) => reason)).toEqual([
      'StemworkError [INTERNAL_ERROR]: It failed. caused by Error: no ink',
      null,
      null,
      null,
    ])
  })

  test('is short, however often and with whatever words the job fails', () => {
    let job: JobRecord = { ...sampleJob(), notBefore: 0 }
    for (let token = 1; token <= 50; token++) {
      job = claimed(job, token * 10, 'worker')
      job = applied(
        job,
        { kind: 'requeue', token, delayMs: 0, onShutdown: false, failure: `a${'x'.repeat(8000)}` },
        token * 10,
      )
    }
    expect(job.history).toHaveLength(10)
    expect(job.history.at(-1)).toMatchObject({ token: 50, reason: `a${'x'.repeat(399)}...` })
    job = claimed(job, 1000, 'worker')
    job = applied(
      job,
      { kind: 'requeue', token: 51, delayMs: 0, onShutdown: false, failure: `\n${'x'.repeat(400)}` },
      1000,
    )
    expect(job.history.at(-1)?.reason).toBe('x'.repeat(400))
    expect(JSON.stringify(job.history).length).toBeLessThan(6000)
  })
})

function pureSubject(): Subject {
  const { clock, advance } = settableClock(0)
  const jobs = new Map<string, JobRecord>()
  const keep = (job: JobRecord | undefined) => {
    if (job) jobs.set(job.id, job)
    return job
  }
  return {
    advance,
    async create() {
      const job = sampleJob()
      jobs.set(job.id, job)
      return job
    },
    async claim({ id, ...request }) {
      const found = id === undefined ? [...jobs.values()].find((each) => isClaimable(each, clock())) : jobs.get(id)
      return found && keep(claim(found, request, clock()))
    },
    async apply(id, change) {
      const job = jobs.get(id)
      return job && keep(transition(job, change, clock()))
    },
    get: async (id) => jobs.get(id),
  }
}

function storeSubject(store: JobStore, advance: (milliseconds: number) => void): Subject {
  return {
    advance,
    create: async () => (await store.create(sampleJob())).job,
    claim: (request) => store.claim(request),
    apply: (id, change) => store.apply(id, change),
    get: (id) => store.get(id),
  }
}

function freeze(job: JobRecord): JobRecord {
  for (const value of Object.values(job)) if (typeof value === 'object' && value !== null) Object.freeze(value)
  return Object.freeze(job)
}
