import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fail, heartbeat, requeue, sampleJob, succeed } from '../../src/contract/job-samples.js'
import { memoryJobs } from '../../src/adapters/memory.js'
import { sqliteStores, type SqliteStores } from '../../src/adapters/stores/sqlite/index.js'
import { deliverableAt, lapsesAt, removableAt, waitingSince } from '../../src/core/engine/job/due-times.js'
import type { JobRecord } from '../../src/core/engine/job/job.js'
import { claim, isClaimable, transition } from '../../src/core/engine/job/transitions.js'
import type { JobStore } from '../../src/core/engine/ports/job-store.js'
import { settableClock } from '../contract/settable-clock.js'
import { followsTheRules, steps, type Subject } from './job-model.js'

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
    let directory: string
    let stores: SqliteStores
    const { clock, advance } = settableClock()

    beforeAll(async () => {
      directory = await mkdtemp(join(tmpdir(), 'stemwork-model-'))
      stores = sqliteStores({ path: join(directory, 'jobs.db'), clock })
    })
    afterAll(async () => {
      stores.close()
      await rm(directory, { recursive: true })
    })

    test('as well', async () => {
      const check = fc.asyncProperty(steps, async (sequence) => {
        await followsTheRules(storeSubject(stores.jobs, advance), sequence)
        // The next sequence's claims of any job must not find these.
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
    expect(deliverableAt(sampleJob({ deliveries, deleted: true }))).toBeNull()
  })
})

test('a transition leaves the record that it is given as it was', () => {
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
    // Its worker is lost: nobody saw it end, but its lease.
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
        { kind: 'requeue', token, delayMs: 0, onShutdown: false, failure: 'x'.repeat(8000) },
        token * 10,
      )
    }
    expect(job.history).toHaveLength(10)
    expect(job.history.at(-1)?.token).toBe(50)
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
