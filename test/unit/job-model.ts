import fc from 'fast-check'
import { expect } from 'vitest'
import { cancel, fail, heartbeat, requeue, succeed } from '../../src/contract/job-samples.js'
import type { JobRecord } from '../../src/core/engine/job/job.js'
import type { ClaimRequest, JobChange } from '../../src/core/engine/job/transitions.js'

/** The subject of the test: one place for jobs, with a clock that the model moves. */
export interface Subject {
  create(): Promise<JobRecord>
  claim(request: ClaimRequest & { id?: string }): Promise<JobRecord | undefined>
  apply(id: string, change: JobChange): Promise<JobRecord | undefined>
  /** The record, including that of a deleted job if the subject can show it. */
  get(id: string): Promise<JobRecord | undefined>
  advance(milliseconds: number): void
}

const workers = ['ann', 'bob', 'eve'] as const
const jobCount = 2
const leaseMs = 100

type Worker = (typeof workers)[number]
/** Steps by a worker that holds, or once held, a lease. */
type HeldStep =
  | { do: 'heartbeat'; job: number; worker: Worker; progress: number }
  | { do: 'succeed'; job: number; worker: Worker }
  | { do: 'fail'; job: number; worker: Worker }
  | { do: 'requeue'; job: number; worker: Worker; delayMs: number; onShutdown: boolean }
/** Steps that need no lease. */
type OpenStep = { do: 'cancel'; job: number } | { do: 'delete'; job: number } | { do: 'expire'; job: number }
type Step =
  | HeldStep
  | OpenStep
  | { do: 'claim'; job: number; worker: Worker }
  | { do: 'claimNext'; worker: Worker }
  | { do: 'advance'; milliseconds: number }

const job = fc.nat({ max: jobCount - 1 })
const worker = fc.constantFrom(...workers)

export const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof<fc.WeightedArbitrary<Step>[]>(
    { weight: 5, arbitrary: fc.record({ do: fc.constant('claim' as const), job, worker }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('claimNext' as const), worker }) },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('heartbeat' as const),
        job,
        worker,
        progress: fc.integer({ min: 0, max: 10 }).map((tenths) => tenths / 10),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('succeed' as const), job, worker }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('fail' as const), job, worker }) },
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constant('requeue' as const),
        job,
        worker,
        delayMs: fc.constantFrom(0, 50, 150),
        onShutdown: fc.boolean(),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('cancel' as const), job }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('delete' as const), job }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('expire' as const), job }) },
    {
      weight: 4,
      arbitrary: fc.record({ do: fc.constant('advance' as const), milliseconds: fc.constantFrom(1, 49, 50, 100, 101) }),
    },
  ),
  { maxLength: 60 },
)

/** The expected state of a job by the rules, implemented independently of the state machine. */
interface Expected {
  id: string
  status: JobRecord['status']
  /** The worker that may change the job now: the one with the last granted token. */
  holder: Worker | null
  leaseUntil: number
  dueAt: number
  token: number
  claims: number
  lapses: number
  shutdownRequeues: number
  progress: number
  cancelRequested: boolean
  deleted: boolean
  expired: boolean
  /** The record at its end. */
  final: JobRecord | null
}

/** Runs the steps on the subject and checks after each step that it did exactly what the rules require. */
export async function followsTheRules(subject: Subject, sequence: Step[]): Promise<void> {
  let now = 0
  const jobs: Expected[] = []
  /** The last token that each worker got for each job; it may have been superseded. */
  const tokens = new Map<string, number>()
  for (let n = 0; n < jobCount; n++) {
    const { id } = await subject.create()
    jobs.push({
      id,
      status: 'QUEUED',
      holder: null,
      leaseUntil: 0,
      dueAt: 0,
      token: 0,
      claims: 0,
      lapses: 0,
      shutdownRequeues: 0,
      progress: 0,
      cancelRequested: false,
      deleted: false,
      expired: false,
      final: null,
    })
  }
  for (const step of sequence) {
    if (step.do === 'advance') {
      now += step.milliseconds
      subject.advance(step.milliseconds)
    } else if (step.do === 'claimNext') {
      const record = await subject.claim({ owner: step.worker, leaseMs })
      const claimable = jobs.filter((each) => isClaimable(each))
      if (claimable.length === 0) expect(record).toBeUndefined()
      else
        grant(
          claimable.find((each) => each.id === record?.id),
          step.worker,
          record,
        )
    } else {
      await perform(jobs[step.job]!, step)
    }
    for (const each of jobs) await agrees(each)
  }

  async function perform(
    expected: Expected,
    step: HeldStep | OpenStep | { do: 'claim'; job: number; worker: Worker },
  ): Promise<void> {
    const { id } = expected
    if (step.do === 'claim') {
      const claimable = isClaimable(expected)
      const record = await subject.claim({ id, owner: step.worker, leaseMs })
      if (claimable) grant(expected, step.worker, record)
      else expect(record).toBeUndefined()
      return
    }
    if (step.do === 'cancel' || step.do === 'delete' || step.do === 'expire') {
      const change: JobChange = step.do === 'cancel' ? cancel() : { kind: step.do }
      const record = await subject.apply(id, change)
      expect(record !== undefined, step.do).toBe(ownerless(expected, step.do))
      if (record) afterOwnerless(expected, step.do, record)
      return
    }
    const token = tokens.get(`${step.worker} ${id}`) ?? 0
    const holds =
      !expected.deleted && expected.status === 'STARTED' && expected.holder === step.worker && expected.token === token
    const record = await subject.apply(id, changeOf(step, { id, token }))
    expect(record !== undefined, `${step.do} by ${step.worker}`).toBe(holds)
    if (record) afterHeld(expected, step, record)
  }

  function isClaimable(expected: Expected): boolean {
    if (expected.deleted || expected.final) return false
    return expected.status === 'QUEUED' ? expected.dueAt <= now : expected.leaseUntil <= now
  }

  function grant(expected: Expected | undefined, owner: Worker, record: JobRecord | undefined): void {
    if (!expected || !record) return expect.unreachable('a job that could be claimed was not granted')
    expect(record.token).toBeGreaterThan(expected.token)
    expect(record.lease).toMatchObject({ owner, token: record.token })
    tokens.set(`${owner} ${expected.id}`, record.token)
    Object.assign(expected, {
      status: 'STARTED',
      holder: owner,
      leaseUntil: now + leaseMs,
      token: record.token,
      claims: expected.claims + 1,
      lapses: expected.lapses + (expected.status === 'STARTED' ? 1 : 0),
      progress: 0,
    })
  }

  function ownerless(expected: Expected, what: OpenStep['do']): boolean {
    if (expected.deleted) return false
    if (what === 'delete') return true
    return what === 'cancel' ? expected.final === null : expected.final !== null && !expected.expired
  }

  function afterOwnerless(expected: Expected, what: OpenStep['do'], record: JobRecord): void {
    if (what === 'delete') {
      expect(record.token).toBeGreaterThan(expected.token)
      Object.assign(expected, { deleted: true, holder: null, token: record.token })
    } else if (what === 'expire') {
      expected.expired = true
    } else if (expected.status === 'STARTED' && expected.leaseUntil > now) {
      expected.cancelRequested = true
    } else {
      Object.assign(expected, { status: 'FAILED', holder: null, progress: record.progress, final: record })
    }
  }

  function afterHeld(expected: Expected, step: HeldStep, record: JobRecord): void {
    if (step.do === 'heartbeat') {
      expect(record.progress).toBe(Math.max(expected.progress, step.progress))
      Object.assign(expected, { leaseUntil: now + leaseMs, progress: record.progress })
    } else if (step.do === 'requeue') {
      Object.assign(expected, {
        status: 'QUEUED',
        holder: null,
        dueAt: now + step.delayMs,
        shutdownRequeues: expected.shutdownRequeues + (step.onShutdown ? 1 : 0),
        progress: 0,
      })
    } else {
      Object.assign(expected, {
        status: step.do === 'succeed' ? 'SUCCEEDED' : 'FAILED',
        holder: null,
        progress: record.progress,
        final: record,
      })
    }
  }

  async function agrees(expected: Expected): Promise<void> {
    const record = await subject.get(expected.id)
    if (!record) return expect(expected.deleted, 'a job that was not deleted is gone').toBe(true)
    expect(['QUEUED', 'STARTED', 'SUCCEEDED', 'FAILED']).toContain(record.status)
    expect(record).toMatchObject({
      status: expected.status,
      token: expected.token,
      attempts: expected.claims - expected.shutdownRequeues - expected.lapses,
      lapses: expected.lapses,
      shutdownRequeues: expected.shutdownRequeues,
      cancelRequested: expected.cancelRequested,
      deleted: expected.deleted,
      expired: expected.expired,
    })
    expect(record.lease?.owner ?? null).toBe(expected.holder)
    expect(record.lease === null || record.lease.token === record.token).toBe(true)
    if (expected.final) {
      const { status, outputs, error, completedAt, progress, details } = expected.final
      expect(record, 'an ended job changed').toMatchObject({ status, outputs, error, completedAt, progress, details })
    }
  }
}

function changeOf(step: HeldStep, held: { id: string; token: number }): JobChange {
  switch (step.do) {
    case 'heartbeat':
      return heartbeat(held.token, { leaseMs, progress: step.progress })
    case 'succeed':
      return succeed(held)
    case 'fail':
      return fail(held.token)
    case 'requeue':
      return requeue(held.token, { delayMs: step.delayMs, onShutdown: step.onShutdown })
    default:
      return step satisfies never
  }
}
