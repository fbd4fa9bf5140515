import { describe, expect, test } from 'vitest'
import { sampleJob, sampleError } from '../../../src/contract/job-samples.js'
import { stepFileKey } from '../../../src/core/engine/job/checkpoint-keys.js'
import type { JobRecord } from '../../../src/core/engine/job/job.js'
import {
  maxEventCharacters,
  maxRecordedCharacters,
  maxStepFiles,
  maxSteps,
  maxValueCharacters,
  type StepRecord,
  stepRecordSchema,
  stepStateSchema,
  wakeTime,
  withEvent,
  withStep,
} from '../../../src/core/engine/job/step.js'
import { type JobChange, transition } from '../../../src/core/engine/job/transitions.js'

const now = 1_700_000_000_000

function step(name: string, fields: Partial<StepRecord> = {}): StepRecord {
  return {
    name,
    version: '1',
    state: 'done',
    startedAt: now - 10,
    endedAt: now,
    attempts: 1,
    until: null,
    value: null,
    files: {},
    error: null,
    ...fields,
  }
}
const waiting = (name: string, until: number | null) =>
  step(name, { state: 'waiting', endedAt: null, until, value: undefined })

test('the state of a step lacks what it returned', () => {
  const made = step('make', { value: 'secret', valueKey: 'key', files: { song: { key: 'k', bytes: 1 } } })
  const { value: _value, valueKey: _key, files: _files, ...state } = made
  expect(stepStateSchema.parse(made)).toEqual(state)
})

test('the bounds of steps are those that documents and stores know', () => {
  const bounds = [maxSteps, maxStepFiles, maxValueCharacters, maxRecordedCharacters, maxEventCharacters]
  expect(bounds).toEqual([200, 1000, 1_000_000, 1000, 16_384])
  expect(stepFileKey('checkpoints/j/1-n/', 'mix', 'a.wav')).toBe('checkpoints/j/1-n/step-mix/a.wav')
  for (const state of ['done', 'failed', 'waiting'] as const)
    expect(stepRecordSchema.parse(step('a', { state }))).toMatchObject({ state })
})

describe('the steps of a job', () => {
  test('get a new one at their end, and another state in its place', () => {
    const [a, b] = [step('a', { state: 'failed' }), step('b')]
    expect(withStep([a], b)).toEqual([a, b])
    expect(withStep([a, b], step('a'))).toEqual([step('a'), b])
    const failed = step('b', { state: 'failed' })
    expect(withStep([a, b], failed)).toEqual([a, failed])
  })

  test('keep an event that came before its wait', () => {
    const event = step('ok', { value: { event: 1 } })
    expect(withStep([event], waiting('ok', null))).toEqual([event])
    const failed = step('ok', { state: 'failed' })
    expect(withStep([failed], waiting('ok', null))).toEqual([waiting('ok', null)])
  })

  test('accept an event only once, if a wait expects it or none has come yet', () => {
    const early = withEvent([step('a')], 'ok', { by: 'me' }, now)
    expect(early).toEqual([
      step('a'),
      step('ok', { version: '', startedAt: now, attempts: 0, value: { event: { by: 'me' } } }),
    ])
    const wait = waiting('ok', now + 5)
    expect(withEvent([wait, step('a')], 'ok', 1, now)).toEqual([
      { ...wait, state: 'done', endedAt: now, value: { event: 1 } },
      step('a'),
    ])
    for (const state of ['done', 'failed'] as const)
      expect(withEvent([step('ok', { state })], 'ok', 1, now)).toBeUndefined()
  })

  test('have room for 200, and for 64 Ki characters of events', () => {
    const many = Array.from({ length: 199 }, (_, n) => step(`s${n}`))
    expect(withEvent(many, 'ok', 1, now)).toHaveLength(200)
    expect(withEvent([...many, step('last')], 'ok', 1, now)).toBeUndefined()
    expect(withEvent([...many, waiting('ok', null)], 'ok', 1, now)).toHaveLength(200)

    // Values of a wait and of an early event; values of other steps do not count.
    const others = [
      step('done', { value: 'x'.repeat(65_000) }),
      step('waited', { until: now, value: 'y'.repeat(30_000) }),
      step('early', { attempts: 0, value: 'z'.repeat(30_000) }),
    ]
    const rest = 65_536 - JSON.stringify(['y'.repeat(30_000), 'z'.repeat(30_000), '']).length
    expect(withEvent(others, 'ok', 'e'.repeat(rest), now)).toHaveLength(4)
    expect(withEvent(others, 'ok', 'e'.repeat(rest + 1), now)).toBeUndefined()
  })

  test('let a job continue when the first wait is over, at once if one is, and never before now', () => {
    const steps = [waiting('a', now + 20), waiting('b', now + 10), waiting('c', null), step('d'), waiting('e', now - 5)]
    expect(wakeTime(steps, ['a', 'b', 'c'], now)).toBe(now + 10)
    expect(wakeTime(steps, ['a', 'c'], now)).toBe(now + 20)
    expect(wakeTime(steps, ['c'], now)).toBe(Infinity)
    for (const names of [[], ['gone'], ['a', 'd'], ['e']]) expect(wakeTime(steps, names, now)).toBe(now)
  })
})

describe('a change of steps', () => {
  const lease = { owner: 'w', token: 3, nonce: 'n', until: now + 5 }
  const running = (fields: Partial<JobRecord> = {}) =>
    sampleJob({
      status: 'STARTED',
      token: 3,
      lease,
      attempts: 3,
      lapses: 2,
      stage: 'work',
      pool: 'gpu',
      dueAt: 5,
      history: [
        { token: 3, worker: 'w', startedAt: now - 5, endedAt: null, outcome: 'running', reason: null } as never,
      ],
      ...fields,
    })
  const claim = { token: 3, nonce: 'n' }
  const apply = (job: JobRecord, change: object) => transition(job, change as JobChange, now)

  test('stores a step, renews the lease and resets the count of attempts if the step is finished', () => {
    const job = running({ steps: [step('a')] })
    const kept = apply(job, { kind: 'step', ...claim, leaseMs: 1000, step: step('b') })
    const renewed = { ...lease, until: now + 1000 }
    expect(kept).toEqual({ ...job, steps: [step('a'), step('b')], attempts: 1, lapses: 0, lease: renewed })
    const failed = step('b', { state: 'failed' })
    expect(apply(job, { kind: 'step', ...claim, leaseMs: 1000, step: failed })).toEqual({
      ...job,
      steps: [step('a'), failed],
      lease: renewed,
    })
    expect(apply(running({ attempts: 0 }), { kind: 'step', ...claim, leaseMs: 1, step: step('b') })?.attempts).toBe(0)
    expect(apply(job, { kind: 'step', token: 2, nonce: 'n', leaseMs: 1000, step: step('b') })).toBeUndefined()
  })

  test('suspends a job until its waits are over, in a pool of its own', () => {
    const job = running({ steps: [waiting('a', now + 50)], processorSeconds: 1 })
    const suspended = apply(job, { kind: 'suspend', ...claim, waitsFor: ['a'], pool: 'big', processorSeconds: 2 })
    expect(suspended).toMatchObject({
      status: 'QUEUED',
      lease: null,
      stage: null,
      pool: 'big',
      dueAt: now + 50,
      attempts: 0,
      processorSeconds: 3,
    })
    expect(suspended?.history.at(-1)).toMatchObject({ outcome: 'suspended', endedAt: now })
    expect(apply(job, { kind: 'suspend', ...claim, waitsFor: ['a'] })).toMatchObject({ pool: 'gpu', dueAt: now + 50 })
    const canceled = running({ steps: job.steps, cancelRequested: true })
    expect(apply(canceled, { kind: 'suspend', ...claim, waitsFor: ['a'] })).toMatchObject({ dueAt: now })
    expect(apply(job, { kind: 'suspend', token: 2, waitsFor: [] })).toBeUndefined()
  })

  test('makes a job due by the event that it waits for, and by no other', () => {
    const job = sampleJob({ dueAt: now + 50, steps: [waiting('a', null), step('b')] })
    const event = { kind: 'event', name: 'a', value: 1 }
    const done = { ...waiting('a', null), state: 'done', endedAt: now, value: { event: 1 } }
    expect(apply(job, event)).toEqual({ ...job, dueAt: now, steps: [done, step('b')] })
    const early = apply(job, { ...event, name: 'later' })
    expect([early?.dueAt, early?.steps.map(({ name }) => name)]).toEqual([now + 50, ['a', 'b', 'later']])
    expect(apply(running({ steps: job.steps }), event)).toMatchObject({ status: 'STARTED', dueAt: 5 })
    for (const fields of [{ deleted: true }, { status: 'FAILED' }, { steps: [step('a')] }] as const)
      expect(apply({ ...job, ...fields } as JobRecord, event)).toBeUndefined()
  })

  test('drops the values of steps at a success, and steps that are not worth keeping at a retry', () => {
    const steps = [step('a', { value: 5, valueKey: 'k' })]
    const succeed = { kind: 'succeed', ...claim, outputs: {}, details: {}, retentionMs: 1, messages: [] }
    const ended = apply(running({ steps, failure: 'an earlier one' }), succeed)
    expect([ended?.steps, ended?.failure]).toEqual([[step('a')], null])
    const failed = (error: JobRecord['error']) =>
      apply(sampleJob({ status: 'FAILED', steps, error }), { kind: 'retry' })
    expect(failed(sampleError)?.steps).toEqual(steps)
    expect(failed({ ...sampleError, code: 'BAD_INPUT', retryable: false })?.steps).toEqual([])
    expect(failed(null)?.steps).toEqual([])
  })

  test('counts neither a preempted attempt nor one whose worker was lost, and never goes below 0', () => {
    const preempt = (attempts: number) => apply(running({ attempts }), { kind: 'preempt', ...claim })?.attempts
    expect([preempt(3), preempt(0)]).toEqual([2, 0])
    const lost = { ...lease, until: now - 7 }
    const release = { kind: 'release', lapsedBefore: now }
    const released = (fields: Partial<JobRecord>) => apply(running({ lease: lost, ...fields }), release)
    expect([released({ attempts: 3 })?.attempts, released({ attempts: 0 })?.attempts]).toEqual([2, 0])
    expect(released({})?.history.at(-1)).toMatchObject({ outcome: 'lapsed', endedAt: now - 7 })
    expect(released({ deleted: true })).toBeUndefined()
    expect(released({ lease: null })?.history.at(-1)).toMatchObject({ outcome: 'lapsed', endedAt: now })
  })
})
