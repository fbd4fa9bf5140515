import { describe, expect, test } from 'vitest'
import { internalError, StemworkError } from '../../src/core/engine/errors.js'
import {
  canceled,
  isTransient,
  jobError,
  lostEveryWorker,
  missedDeadline,
  timedOut,
} from '../../src/core/engine/job/failure.js'
import { fieldIssues, invalidParams, issuesText } from '../../src/core/engine/job/field-issues.js'
import { requestDigest } from '../../src/core/engine/job/idempotency.js'
import { jobRecordSchema } from '../../src/core/engine/job/job.js'
import { mostCounted } from '../../src/core/engine/ports/job-store.js'
import { newJob } from '../../src/core/engine/job/new-job.js'
import { labelSchema, labelsOf, poolOf, servesPool } from '../../src/core/engine/job/pool.js'
import { alreadyExists, queueFull } from '../../src/core/engine/job/queue-limit.js'
import {
  addUsage,
  dayMs,
  dayOf,
  limitChangeSchema,
  noUsage,
  quotaExceeded,
  quotaSchema,
} from '../../src/core/engine/job/quota.js'
import { inputExpired, notFailed } from '../../src/core/engine/job/retry.js'
import {
  changedRules,
  isHeldBack,
  isSameTarget,
  prioritySchema,
  rulesFor,
  type SchedulingRule,
  schedulingRuleSchema,
} from '../../src/core/engine/job/scheduling.js'
import { jobAttributes } from '../../src/core/engine/job/span-attributes.js'
import { traceContextOf, traceContextSchema, traceHeaders } from '../../src/core/engine/job/trace-context.js'

const request = {
  app: 'app',
  name: null,
  workflow: 'w',
  params: {},
  uploads: {},
  batchName: null,
  metadata: {},
  copyResultsTo: {},
  webhook: null,
  idempotency: null,
}

describe('a new job', () => {
  test('waits, has done nothing and is limited by nothing', () => {
    const { id, ...job } = newJob(request)
    expect(id).toMatch(/^[0-9a-f-]{36}$/)
    expect(job).toEqual({
      ...request,
      alias: null,
      status: 'QUEUED',
      progress: 0,
      keptProgress: 0,
      stage: null,
      outputs: null,
      details: {},
      error: null,
      failure: null,
      createdAt: 0,
      startedAt: null,
      completedAt: null,
      expiresAt: null,
      expired: false,
      lease: null,
      token: 0,
      attempts: 0,
      lapses: 0,
      processorSeconds: 0,
      shutdownRequeues: 0,
      steps: [],
      settlement: null,
      history: [],
      retries: 0,
      notBefore: 0,
      dueAt: null,
      deadline: null,
      pool: '',
      metered: false,
      priority: 0,
      cancelRequested: false,
      deleted: false,
      deliveries: [],
      trace: null,
    })
  })

  test('has the alias, priority, times, pool, meter and trace that it is given', () => {
    const trace = { traceparent: `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01` }
    const given = { alias: 'service/old', priority: 2, notBefore: 5, deadline: 9, pool: 'gpu', metered: true, trace }
    expect(newJob({ ...request, ...given })).toMatchObject(given)
  })

  test('stored by an older or newer version is read with defaults, and loses no field', () => {
    const job = newJob(request)
    const { failure: _1, lapses: _2, history: _3, retries: _4, deadline: _5, pool: _6, metered: _7, ...older } = job
    const { priority: _8, trace: _9, processorSeconds: _10, ...oldest } = older
    expect(jobRecordSchema.parse(oldest)).toEqual(job)
    const attempt = { token: 1, worker: 'w', startedAt: 0, endedAt: null, outcome: 'running', reason: null, more: 1 }
    const lease = { owner: 'w', token: 1, until: 5, more: 2 }
    const newer = { ...job, more: 3, history: [attempt], lease }
    expect(jobRecordSchema.parse(newer)).toEqual({ ...newer, lease: { ...lease, nonce: '' } })
    expect(jobRecordSchema.parse({ ...job, trace: 'unreadable' }).trace).toBeNull()
    for (const outcome of [
      'running',
      'succeeded',
      'failed',
      'requeued',
      'handed_back',
      'preempted',
      'lapsed',
      'suspended',
    ])
      expect(jobRecordSchema.safeParse({ ...job, history: [{ ...attempt, outcome }] }).success, outcome).toBe(true)
    for (const outcome of ['pending', 'delivered', 'gone', 'given_up']) {
      const delivery = { id: 'm', url: 'u', event: 'e', occurredAt: 0, attempts: 0, nextAttemptAt: 1, lastStatus: null }
      expect(jobRecordSchema.safeParse({ ...job, deliveries: [{ ...delivery, outcome }] }).success, outcome).toBe(true)
    }
    for (const code of ['BAD_INPUT', 'TIMEOUT', 'INTERNAL_ERROR', 'CANCELED'])
      expect(
        jobRecordSchema.safeParse({ ...job, error: jobError(new StemworkError(code as 'TIMEOUT', 'm')) }).success,
      ).toBe(true)
    for (const wrong of [{ progress: -0.1 }, { progress: 1.1 }, { status: '' }, { priority: 3 }])
      expect(jobRecordSchema.safeParse({ ...job, ...wrong }).success).toBe(false)
  })
})

describe('what is wrong with a request', () => {
  test('is listed with its path, in bounded text and up to 20 times', () => {
    const issue = { path: ['a', 0, 'b'], message: 'm'.repeat(300) }
    expect(fieldIssues([issue], ['jobs'])).toEqual([{ path: 'jobs.a.0.b', message: issue.message }])
    expect(fieldIssues([{ ...issue, message: 'x' + 'm'.repeat(300) }])).toEqual([
      { path: 'a.0.b', message: `x${'m'.repeat(299)}...` },
    ])
    expect(fieldIssues(Array.from({ length: 21 }, () => issue)).length).toBe(20)
  })

  test('is given in one line, with how much more there is', () => {
    const issues = [
      { path: 'a', message: 'is wrong' },
      { path: '', message: 'is missing' },
    ]
    expect(issuesText(issues)).toBe('a: is wrong; is missing')
    expect(issuesText(issues, 5)).toBe('a: is wrong; is missing; and 3 more')
    const found = [{ path: ['a', 0], message: 'is wrong' }]
    expect(invalidParams('The params are invalid', found, { prefix: ['jobs'], advice: ' See there.' })).toMatchObject({
      code: 'INVALID_PARAMS',
      message: 'The params are invalid: jobs.a.0: is wrong. See there.',
      details: { issues: [{ path: 'jobs.a.0', message: 'is wrong' }] },
    })
  })
})

test('jobs are counted up to 10,000', () => {
  expect(mostCounted).toBe(10_000)
})

test('two requests have the same digest if they are equivalent', () => {
  const digest = requestDigest({ a: [1, { c: null, d: 'x' }], b: 2 })
  expect(digest).toMatch(/^[0-9a-f]{64}$/)
  expect(requestDigest({ b: 2, a: [1, { d: 'x', c: null }] })).toBe(digest)
  for (const other of [{ a: [{ c: null, d: 'x' }, 1], b: 2 }, { a: [1, { c: 0, d: 'x' }], b: 2 }, [], null, 'a', 1])
    expect(requestDigest(other)).not.toBe(digest)
  // A list differs from an object with numbered keys.
  expect(requestDigest({ a: [1] })).not.toBe(requestDigest({ a: { 0: 1 } }))
  expect(requestDigest([1, 2])).not.toBe(requestDigest([2, 1]))
  expect(requestDigest({ c: 3, a: 1, b: 2 })).toBe(requestDigest({ b: 2, c: 3, a: 1 }))
})

describe('the errors of a job', () => {
  test('show the messages of the library, and hide those of others', () => {
    const known = new StemworkError('BAD_INPUT', 'No audio.', { reason: 'decode_failed' })
    expect(jobError(known)).toEqual({
      code: 'BAD_INPUT',
      title: 'The input cannot be processed',
      message: 'No audio.',
      reason: 'decode_failed',
      retryable: false,
    })
    const hidden = jobError(internalError(new Error('x')))
    for (const other of [new Error('/secret'), new StemworkError('QUEUE_FULL', '/secret'), { code: 'BAD_INPUT' }]) {
      expect(jobError(other)).toEqual(hidden)
      expect(hidden).toMatchObject({ code: 'INTERNAL_ERROR', title: 'The service failed' })
    }
    const missing = jobError(new StemworkError('MISSING_DEPENDENCY', '/secret'))
    expect(missing).toMatchObject({ code: 'INTERNAL_ERROR', message: expect.stringContaining('is not set up') })
    expect(jobError(canceled())).toMatchObject({ code: 'CANCELED', reason: null, retryable: false })
    expect(jobError(missedDeadline(0))).toMatchObject({ code: 'TIMEOUT', reason: 'deadline' })
    expect(jobError(timedOut(90_000))).toMatchObject({
      code: 'TIMEOUT',
      reason: null,
      message: expect.stringContaining('90 s'),
    })
    expect(jobError(lostEveryWorker(6))).toMatchObject({
      code: 'INTERNAL_ERROR',
      reason: 'worker_lost',
      message: expect.stringContaining('6 times'),
    })
  })

  test('are temporary if they say so, or are not errors of the library', () => {
    expect(isTransient(new Error('disk full'))).toBe(true)
    expect(isTransient(canceled())).toBe(false)
    expect(isTransient(new StemworkError('INTERNAL_ERROR', 'm', { retryable: true }))).toBe(true)
  })

  test('of refused requests have a code for each reason', () => {
    expect(queueFull(3)).toMatchObject({ code: 'QUEUE_FULL', retryable: true, message: expect.stringContaining('3') })
    expect(alreadyExists('id')).toMatchObject({ code: 'ALREADY_EXISTS' })
    expect(inputExpired({ id: 'id' })).toMatchObject({ code: 'INPUT_EXPIRED' })
    const job = { id: 'id', status: 'FAILED' as const, deadline: 0 }
    expect(notFailed(job)).toMatchObject({
      code: 'NOT_FAILED',
      message: expect.stringContaining('1970-01-01T00:00:00'),
    })
    expect(notFailed({ ...job, status: 'QUEUED' }).message).toContain('it is QUEUED')
  })
})

describe('a pool', () => {
  test('consists of its labels, sorted and without duplicates', () => {
    expect(poolOf(['gpu', 'a', 'gpu'])).toBe('a gpu')
    expect([labelsOf(''), labelsOf('a gpu')]).toEqual([[], ['a', 'gpu']])
    expect(['a', 'model:x_1-2.3', 'a'.repeat(60)].every((label) => labelSchema.safeParse(label).success)).toBe(true)
    expect(['', 'a b', 'a'.repeat(61)].some((label) => labelSchema.safeParse(label).success)).toBe(false)
  })

  test('is served by workers that have all of its labels, or give no list', () => {
    expect(servesPool(undefined, 'gpu')).toBe(true)
    expect(servesPool(['b', 'gpu', 'a'], 'a gpu')).toBe(true)
    expect([servesPool(['gpu'], 'a gpu'), servesPool([], 'gpu'), servesPool([], '')]).toEqual([false, false, true])
  })
})

describe('a quota', () => {
  const now = Date.UTC(2024, 1, 28, 12)
  const used = { jobs: 3, audioSeconds: 90, bytes: 50 }
  const refused = (quota: Parameters<typeof quotaExceeded>[0], jobs = 1) => quotaExceeded(quota, used, jobs, now)

  test('allows what fits and says which figure is used up, and when it is renewed', () => {
    expect(refused({})).toBeUndefined()
    expect(refused({ jobs: 4, audioMinutes: 1.6, bytes: 51 })).toBeUndefined()
    expect(refused({ jobs: 4 }, 2)).toMatchObject({
      code: 'QUOTA_EXCEEDED',
      retryable: true,
      details: { quota: 'jobs', limit: 4, used: 3, resetsAt: '2024-02-29T00:00:00.000Z' },
      message: expect.stringContaining('these would be 2 more'),
    })
    expect(refused({ jobs: 3 })?.message).not.toContain('these would be')
    expect(refused({ jobs: 3 })?.message).toContain('3 jobs a day')
    expect(refused({ jobs: 1 })?.message).toContain('1 job a day')
    expect(refused({ audioMinutes: 1.5 })?.details).toMatchObject({ quota: 'audioMinutes', limit: 1.5, used: 1.5 })
    expect(refused({ audioMinutes: 1.5 }, 2)?.message).not.toContain('these would be')
    expect(refused({ bytes: 50 })?.details).toMatchObject({ quota: 'bytes', limit: 50, used: 50 })
    expect(quotaExceeded({ audioMinutes: 1 }, { ...used, audioSeconds: 61 }, 1, now)?.details).toMatchObject({
      used: 1.02,
    })
  })

  test('ends with the day in UTC, and usage adds up', () => {
    expect(dayMs).toBe(86_400_000)
    expect([dayOf(0), dayOf(dayMs - 1), dayOf(dayMs)]).toEqual([0, 0, 1])
    expect(addUsage(noUsage, {})).toEqual({ jobs: 0, audioSeconds: 0, bytes: 0 })
    expect(addUsage(used, { jobs: 1, audioSeconds: 2, bytes: 3 })).toEqual({ jobs: 4, audioSeconds: 92, bytes: 53 })
    expect(addUsage(used, {})).toEqual(used)
  })

  test('has no figure below zero and none that is unknown', () => {
    for (const wrong of [{ jobs: -1 }, { audioMinutes: -1 }, { bytes: 0.5 }, { other: 1 }]) {
      expect(quotaSchema.safeParse(wrong).success).toBe(false)
      expect(limitChangeSchema.safeParse(wrong).success).toBe(false)
    }
    expect(limitChangeSchema.safeParse({ jobs: null, audioMinutes: 0, maxQueuedJobs: null }).success).toBe(true)
    expect(limitChangeSchema.safeParse({ maxQueuedJobs: 0 }).success).toBe(false)
  })
})

describe('the rules of scheduling', () => {
  const deployment = { kind: 'deployment' } as const
  const application = (id: string) => ({ kind: 'application', id }) as const
  const workflow = (id: string) => ({ kind: 'workflow', id }) as const
  const rule = (target: SchedulingRule['target'], maxRunning: number | null = 1): SchedulingRule => ({
    target,
    state: 'open',
    maxRunning,
  })

  test('are one for each target, and none equals the default', () => {
    expect(isSameTarget(deployment, deployment)).toBe(true)
    expect(isSameTarget(application('a'), application('a'))).toBe(true)
    for (const [a, b] of [
      [application('a'), application('b')],
      [application('a'), workflow('a')],
      [deployment, application('a')],
    ] as const)
      expect(isSameTarget(a, b)).toBe(false)
    const paused = changedRules([rule(deployment)], application('a'), { state: 'paused' })
    expect(paused).toEqual([rule(deployment), { target: application('a'), state: 'paused', maxRunning: null }])
    const limited = changedRules(paused, application('a'), { maxRunning: 2 })
    expect(limited[1]).toEqual({ target: application('a'), state: 'paused', maxRunning: 2 })
    const reopened = changedRules(limited, application('a'), { state: 'open' })
    expect(reopened[1]).toEqual(rule(application('a'), 2))
    expect(changedRules(reopened, application('a'), { maxRunning: null })).toEqual([rule(deployment)])
  })

  test('have the target, state and bounds that the interfaces state', () => {
    const isRule = (fields: object) => schedulingRuleSchema.safeParse({ ...rule(deployment), ...fields }).success
    for (const target of [deployment, application('a'), workflow('w')])
      for (const state of ['open', 'paused', 'draining']) expect(isRule({ target, state })).toBe(true)
    expect(isRule({ target: application('an application') }) && isRule({ target: workflow('a/workflow') })).toBe(true)
    for (const wrong of [
      { target: application('') },
      { target: workflow('') },
      { target: { kind: '' } },
      { state: '' },
      { maxRunning: 0 },
    ])
      expect(isRule(wrong)).toBe(false)
    const priorities = [-3, -2, 2, 3, 0.5].map((priority) => prioritySchema.safeParse(priority).success)
    expect(priorities).toEqual([false, true, true, false, false])
    expect(changedRules([], workflow('w'), { maxRunning: 2 })).toEqual([rule(workflow('w'), 2)])
  })

  test('apply to jobs of their application, their workflow and all', () => {
    const rules = [deployment, application('a'), application('b'), workflow('a'), workflow('w')].map((target) =>
      rule(target),
    )
    expect(rulesFor(rules, { app: 'a', workflow: 'w' }).map(({ target }) => target)).toEqual([
      deployment,
      application('a'),
      workflow('w'),
    ])
  })

  test('hold back paused jobs, and waiting jobs while as many run as allowed', () => {
    const job = { app: 'a', workflow: 'w', status: 'QUEUED' }
    const held = (rules: SchedulingRule[], running: number, status = 'QUEUED') =>
      isHeldBack(rules, { ...job, status }, (target) => (target.kind === 'application' ? running : 0))
    expect([0, 1, 2].map((running) => held([rule(application('a'), 1)], running))).toEqual([false, true, true])
    // The job already runs: its worker was lost.
    expect(held([rule(application('a'), 1)], 2, 'STARTED')).toBe(false)
    expect(held([{ ...rule(application('a'), null), state: 'paused' }], 0, 'STARTED')).toBe(true)
    expect(held([{ ...rule(application('a'), null), state: 'draining' }], 5)).toBe(false)
    expect(held([rule(deployment), rule(application('a'))], 1)).toBe(true)
  })
})

describe('the context of a trace', () => {
  const traceparent = `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`
  const contextOf = (given: Record<string, string>) => traceContextOf(new Headers(given))

  test('is read from the headers of a request, if it is valid', () => {
    expect(contextOf({ traceparent })).toEqual({ traceparent })
    expect(contextOf({ traceparent, tracestate: 'a=1' })).toEqual({ traceparent, tracestate: 'a=1' })
    expect(traceContextOf({ get: (name) => ` ${name === 'traceparent' ? traceparent : 'a=1'} ` })).toEqual({
      traceparent,
      tracestate: 'a=1',
    })
    for (const wrong of [
      '',
      'x',
      traceparent.replace(/^00/, 'ff'),
      traceparent.replaceAll('1', '0'),
      `x${traceparent}`,
    ])
      expect(contextOf({ traceparent: wrong }), wrong).toBeUndefined()
    expect(contextOf({ tracestate: 'a=1' })).toBeUndefined()
  })

  test("leaves out a vendor's state that is too long or not text", () => {
    const long = 'a'.repeat(512)
    expect(contextOf({ traceparent, tracestate: long })).toEqual({ traceparent, tracestate: long })
    expect(contextOf({ traceparent, tracestate: `${long}a` })).toEqual({ traceparent })
    expect(contextOf({ traceparent, tracestate: 'a=\u00e9' })).toEqual({ traceparent })
    expect(contextOf({ traceparent, tracestate: '' })).toEqual({ traceparent })
    const isContext = (tracestate: string) => traceContextSchema.safeParse({ traceparent, tracestate }).success
    expect([isContext('a=1'), isContext(long), isContext(`${long}a`)]).toEqual([true, true, false])
  })

  test('is passed on unchanged', () => {
    expect([traceHeaders(null), traceHeaders(undefined)]).toEqual([{}, {}])
    expect(traceHeaders({ traceparent })).toEqual({ traceparent })
    expect(traceHeaders({ traceparent, tracestate: 'a=1' })).toEqual({ traceparent, tracestate: 'a=1' })
  })
})

test('the spans of a job name it by the conventions for messages', () => {
  expect(jobAttributes({ id: 'job', app: 'app', workflow: 'w' })).toEqual({
    'messaging.system': 'stemwork',
    'messaging.destination.name': 'w',
    'messaging.message.id': 'job',
    'stemwork.app': 'app',
  })
})
