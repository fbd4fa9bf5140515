import { describe, expect, test } from 'vitest'
import { sampleJob } from '../../../src/contract/job-samples.js'
import { earliestPending, withTryDeferred } from '../../../src/core/engine/job/deliveries.js'
import { claimableFrom, isAbandoned, retryAt } from '../../../src/core/engine/job/due-times.js'
import { type Delivery, type JobRecord, jobRecordSchema } from '../../../src/core/engine/job/job.js'
import { admission, afterFailure, onTrial } from '../../../src/core/engine/job/receiver.js'
import { isHeldBack, limitOfAll, rulesFor, type SchedulingRule } from '../../../src/core/engine/job/scheduling.js'
import { folded } from '../../../src/core/engine/job/search-text.js'
import { type JobChange, transition } from '../../../src/core/engine/job/transitions.js'

const now = 1_700_000_000_000

describe('a receiver of webhooks', () => {
  const target = { app: 'a', origin: 'https://a.example', status: 500 }
  const minute = 60_000

  test('is paused from its fifth failure on, for a minute and then twice as long each time, at most two hours', () => {
    let receiver: ReturnType<typeof afterFailure> | undefined
    const pauses: (number | null)[] = []
    for (let failures = 1; failures <= 13; failures++) {
      receiver = afterFailure(receiver, target, { now: now + failures, disableAfterMs: 1e9 })
      expect(receiver).toMatchObject({ app: 'a', origin: target.origin, lastStatus: 500, failures })
      expect([receiver.failingSince, receiver.disabledAt]).toEqual([now + 1, null])
      pauses.push(receiver.nextTrialAt === null ? null : (receiver.nextTrialAt - now - failures) / minute)
    }
    expect(pauses).toEqual([null, null, null, null, 1, 2, 4, 8, 16, 32, 64, 120, 120])
  })

  test('is disabled when it is paused and has failed for too long, and stays so', () => {
    const after = (failures: number, since: number) =>
      afterFailure(
        { ...afterFailure(undefined, target, { now, disableAfterMs: 1000 }), failures, failingSince: now - since },
        target,
        { now, disableAfterMs: 1000 },
      )
    expect([after(3, 5000), after(4, 999), after(4, 1000)].map(({ disabledAt }) => disabledAt)).toEqual([
      null,
      null,
      now,
    ])
    const disabled = after(4, 1000)
    expect(afterFailure(disabled, target, { now: now + 5, disableAfterMs: 1000 }).disabledAt).toBe(now)
    expect(admission(disabled, now)).toEqual({ kind: 'disabled' })
  })

  test('gets all messages, one as a trial, or none for a while', () => {
    expect(admission(undefined, now)).toEqual({ kind: 'send' })
    const failing = afterFailure(undefined, target, { now, disableAfterMs: 1e9 })
    expect(admission(failing, now)).toEqual({ kind: 'send' })
    const trying = onTrial(failing, now, 500)
    expect(trying).toEqual({ ...failing, nextTrialAt: now + 500 })
    expect([admission(trying, now + 499), admission(trying, now + 500)]).toEqual([
      { kind: 'wait', delayMs: 1 },
      { kind: 'trial' },
    ])
  })
})

describe('the rules of an operator', () => {
  const rule = (target: SchedulingRule['target'], maxRunning: number | null = null): SchedulingRule => ({
    target,
    state: 'open',
    maxRunning,
  })
  const ofAll = rule({ kind: 'application', id: '*' }, 2)
  const job = { app: 'a', workflow: 'w', status: 'QUEUED' }

  test('limit each application without a limit of its own by the general limit', () => {
    const paused = { ...rule({ kind: 'application', id: 'a' }), state: 'paused' as const }
    const own = rule({ kind: 'application', id: 'a' }, 5)
    const others = [rule({ kind: 'workflow', id: 'w' }, 9), rule({ kind: 'deployment' }, 7)]
    const inherited = rule({ kind: 'application', id: 'a' }, 2)
    expect(rulesFor([...others, paused, ofAll], job)).toEqual([...others, paused, inherited])
    expect(rulesFor([...others, own, ofAll], job)).toEqual([...others, own])
    expect(rulesFor([...others], job)).toEqual(others)
    expect(isHeldBack([ofAll], job, () => 1)).toBe(false)
    expect(isHeldBack([ofAll], job, () => 2)).toBe(true)
  })

  test('know the general limit by its name among applications', () => {
    const workflow = rule({ kind: 'workflow', id: '*' }, 3)
    expect([limitOfAll([workflow]), limitOfAll([rule({ kind: 'application', id: 'a' }, 4)])]).toEqual([null, null])
    expect([limitOfAll([]), limitOfAll([workflow, ofAll])]).toEqual([null, 2])
  })
})

describe('the times of a job', () => {
  test('say when it is tried again after a failure, and not what else it waits for', () => {
    const history = (outcome: string) =>
      [{ outcome: 'lapsed' }, { outcome: 'lapsed' }, { outcome }] as unknown as JobRecord['history']
    expect(retryAt(sampleJob({ dueAt: 5, history: history('requeued') }))).toBe(5)
    expect(retryAt(sampleJob({ dueAt: 5, history: history('suspended') }))).toBeNull()
    expect(retryAt(sampleJob({ dueAt: 5, history: [] }))).toBeNull()
    expect(retryAt(sampleJob({ status: 'STARTED', dueAt: 5, history: history('requeued') }))).toBeNull()
    expect(claimableFrom({ notBefore: 0, dueAt: null })).toBe(0)
  })

  test('give up a lapsed one that was canceled or is too late', () => {
    const lapsed = (fields: Partial<JobRecord>, until = now) =>
      isAbandoned(sampleJob({ status: 'STARTED', lease: { owner: 'w', token: 1, nonce: '', until }, ...fields }), now)
    expect([lapsed({ cancelRequested: true }), lapsed({ deadline: now })]).toEqual([true, true])
    expect([lapsed({}), lapsed({ deadline: now + 1 }), lapsed({ cancelRequested: true }, now + 1)]).toEqual([
      false,
      false,
      false,
    ])
    expect(isAbandoned(sampleJob({ cancelRequested: true }), now)).toBe(false)
  })
})

describe('the messages of a record', () => {
  const delivery = (id: string, nextAttemptAt: number | null, outcome: Delivery['outcome'] = 'pending'): Delivery => ({
    id,
    url: 'u',
    event: 'e',
    occurredAt: 0,
    attempts: 0,
    lastStatus: null,
    nextAttemptAt,
    outcome,
  })

  test('are due earliest first, and among equals in the order of the record', () => {
    const deliveries = [delivery('last', null), delivery('b', 9), delivery('a', 5), delivery('c', 5)]
    expect(earliestPending({ deliveries })?.id).toBe('a')
    expect(earliestPending({ deliveries: [delivery('sent', 1, 'delivered'), delivery('b', 9)] })?.id).toBe('b')
    expect(earliestPending({ deliveries: [delivery('last', null)] })).toBeUndefined()
  })

  test('are put off without counting an attempt', () => {
    const job = sampleJob({ deliveries: [delivery('a', 5), delivery('b', 6)] })
    const later = [delivery('a', now + 7), delivery('b', 6)]
    const request = { deliveryId: 'a', delayMs: 7 }
    expect(withTryDeferred(job, request, now)).toEqual({ ...job, deliveries: later })
    expect(transition(job, { kind: 'deferDelivery', ...request }, now)?.deliveries).toEqual(later)
  })
})

describe('a job', () => {
  const job = sampleJob({ createdAt: now + 5000, dueAt: null })

  test('that was created while the clock was ahead is due sooner, but never later than now', () => {
    const hastened = (byMs: number, fields: Partial<JobRecord> = {}) =>
      transition({ ...job, ...fields }, { kind: 'hasten', byMs }, now)
    expect(hastened(6000)).toEqual({ ...job, dueAt: now - 1000 })
    expect(hastened(1000)).toEqual({ ...job, dueAt: now })
    expect(hastened(1000, { createdAt: now + 1 })).toMatchObject({ dueAt: now - 999 })
    const others: Partial<JobRecord>[] = [{ createdAt: now }, { dueAt: 1 }, { status: 'STARTED' }, { deleted: true }]
    for (const fields of others) expect(hastened(6000, fields)).toBeUndefined()
  })

  test('waits for a step by the clock of the store', () => {
    const times = { startedAt: 1, endedAt: null, until: 2 }
    const step = { name: 'pause', version: '1', state: 'waiting', attempts: 1, value: null, files: {}, error: null }
    const running = sampleJob({ status: 'STARTED', token: 1, lease: { owner: 'w', token: 1, nonce: 'n', until: now } })
    const change = { kind: 'step', token: 1, nonce: 'n', leaseMs: 1000, step: { ...step, ...times } } as JobChange
    const kept = (waitMs?: number) => transition(running, { ...change, waitMs } as JobChange, now)?.steps
    expect(kept()).toEqual([{ ...step, ...times }])
    expect(kept(70)).toEqual([{ ...step, ...times, until: now + 70 }])
  })

  test('keeps what it was last said to have used, and how much of it is done', () => {
    const used = { bytes: 1, audioSeconds: 2, processorSeconds: 3 }
    const lease = { owner: 'w', token: 1, nonce: 'n', until: now, used }
    const change = { kind: 'heartbeat', token: 1, nonce: 'n', leaseMs: 1000, progress: 0.5, stage: null } as const
    const beat = transition(sampleJob({ status: 'STARTED', token: 1, lease }), change, now)
    expect(beat).toMatchObject({ progress: 0.5, lease: { until: now + 1000, used } })
    const parsed = (keptProgress?: number) => jobRecordSchema.safeParse({ ...job, keptProgress }).data?.keptProgress
    expect([-0.1, 0, 0.5, 1, 1.1, undefined].map(parsed)).toEqual([undefined, 0, 0.5, 1, undefined, 0])
  })

  test('of a lost worker is queued again with what it has used, unless it was canceled', () => {
    const used = { bytes: 1, audioSeconds: 2, processorSeconds: 3 }
    const lease = { owner: 'w', token: 1, nonce: 'n', until: now - 1, used }
    const lost = (fields: Partial<JobRecord> = {}) =>
      transition(
        sampleJob({ status: 'STARTED', startedAt: 1, processorSeconds: 4, lease, ...fields }),
        { kind: 'release', lapsedBefore: now },
        now,
      )
    expect(lost()).toMatchObject({ status: 'QUEUED', lease: null, processorSeconds: 7 })
    expect(lost({ lease: { ...lease, used: undefined } })).toMatchObject({ processorSeconds: 4 })
    expect([lost({ cancelRequested: true }), lost({ deleted: true })]).toEqual([undefined, undefined])
  })
})

test('letters that Unicode does not decompose are searched as the letters that they resemble', () => {
  expect(folded('Łøđðħŧıßæœþ ΣΑΣ')).toBe('loddhtissaeoeth σασ')
})
