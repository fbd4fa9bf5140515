import { describe, expect, test } from 'vitest'
import { sampleJob } from '../../../src/contract/job-samples.js'
import { answerToFailure, crowdedOut, hindranceOf } from '../../../src/core/engine/dispatch/attempt/attempt-failure.js'
import { explainFullDisk } from '../../../src/core/engine/dispatch/attempt/full-disk.js'
import { leaseLost } from '../../../src/core/engine/dispatch/attempt/heartbeat.js'
import { policyOf } from '../../../src/core/engine/dispatch/attempt/policy.js'
import { badInput, preempted, shuttingDown, StemworkError } from '../../../src/core/engine/errors.js'
import { canceled } from '../../../src/core/engine/job/failure.js'
import type { JobRecord } from '../../../src/core/engine/job/job.js'
import { resolveEngineOptions } from '../../../src/core/engine/options.js'

const options = resolveEngineOptions({
  dispatch: { maxAttempts: 3, retryDelayMs: 1000, retryJitter: 0, maxShutdownRequeues: 2 },
  retention: { failedInputsMs: 5000 },
})
const job: JobRecord = {
  ...sampleJob(),
  status: 'STARTED',
  token: 4,
  lease: { owner: 'w', token: 4, nonce: 'n', until: 1 },
  webhook: { url: 'https://example.com/hook', events: null },
}
const claim = { token: 4, nonce: 'n' }

function answer(error: unknown, { attempts = 1, ...fields }: Partial<JobRecord> & { attempts?: number } = {}) {
  const policy = policyOf(job.workflow, undefined, options)
  return answerToFailure(error, {
    job: { ...job, ...fields },
    attempts,
    inputs: { inputUrl: { path: '/tmp/input', bytes: 7 } },
    policy,
    options,
    processorSeconds: 1.5,
  })
}

describe('a failure is answered', () => {
  test('by nothing if the lease was lost: the job belongs to another worker', () => {
    expect(leaseLost().retryable).toBe(true)
    expect(answer(leaseLost())).toBeUndefined()
  })

  test('by a place in the queue if another job got the slot', () => {
    expect(answer(preempted(), { attempts: 3 })).toEqual({ kind: 'preempt', ...claim, processorSeconds: 1.5 })
  })

  test('by a hand-back if the process is closing, and like any failure after too many of these', () => {
    const handBack = { kind: 'requeue', ...claim, processorSeconds: 1.5, delayMs: 0 }
    expect(answer(shuttingDown(), { shutdownRequeues: 1 })).toEqual({ ...handBack, onShutdown: true })
    const tooMany = { shutdownRequeues: 2 }
    expect(answer(shuttingDown(), tooMany)).toMatchObject({ kind: 'requeue', delayMs: 1000, onShutdown: false })
    const last = answer(shuttingDown(), { ...tooMany, attempts: 3 })
    expect(last).toMatchObject({ kind: 'fail', error: { code: 'INTERNAL_ERROR', retryable: true } })
  })

  test('by hand-backs after longer and longer waits if others needed its slot more, and finally by a failure', () => {
    const failure = expect.stringContaining('others need the slot')
    const handBack = { kind: 'requeue', ...claim, processorSeconds: 1.5, onShutdown: true, failure }
    expect(answer(crowdedOut({}))).toEqual({ ...handBack, delayMs: 1000 })
    expect(answer(crowdedOut({}), { shutdownRequeues: 1, attempts: 3 })).toEqual({ ...handBack, delayMs: 2000 })
    expect(answer(crowdedOut({}), { shutdownRequeues: 2, attempts: 2 })).toMatchObject({ onShutdown: false, failure })
    expect(answer(crowdedOut({}), { shutdownRequeues: 2, attempts: 3 })).toMatchObject({
      kind: 'fail',
      error: { reason: 'download_failed', retryable: true },
    })
  })

  test('by hand-backs in the same way if a disk is full, unless the workflow says that no attempt can help', () => {
    const full = explainFullDisk(Object.assign(new Error('no space left'), { code: 'ENOSPC' }), '/scratch')
    const failure = expect.stringContaining('A disk is full')
    const handBack = { kind: 'requeue', ...claim, processorSeconds: 1.5, onShutdown: true, failure }
    expect(answer(full, { attempts: 3 })).toEqual({ ...handBack, delayMs: 1000 })
    expect(answer(full, { shutdownRequeues: 1, attempts: 3 })).toEqual({ ...handBack, delayMs: 2000 })
    expect(answer(full, { shutdownRequeues: 2, attempts: 3 })).toMatchObject({ kind: 'fail', failure })
    const own = new StemworkError('INTERNAL_ERROR', 'The archive is full.', { retryable: false, cause: full })
    expect(answer(own)).toMatchObject({ kind: 'fail' })
  })

  test('by another attempt, each after a longer wait, while attempts are left', () => {
    const failure = expect.stringContaining('disk full')
    const again = { kind: 'requeue', ...claim, processorSeconds: 1.5, onShutdown: false, failure }
    expect(answer(new Error('disk full'))).toEqual({ ...again, delayMs: 1000 })
    expect(answer(new Error('disk full'), { attempts: 2 })).toEqual({ ...again, delayMs: 2000 })
  })

  test('by the end of the job when none is left, with its message and without the error’s text for the client', () => {
    expect(answer(new Error('disk full'), { attempts: 3 })).toMatchObject({
      kind: 'fail',
      ...claim,
      error: { code: 'INTERNAL_ERROR', message: expect.not.stringContaining('disk full') },
      failure: expect.stringContaining('disk full'),
      retentionMs: 5000,
      messages: [{ url: 'https://example.com/hook', event: 'job.failed' }],
    })
  })

  test('by the end of the job at once if no attempt can help', () => {
    for (const error of [canceled(), badInput('decode_failed', 'no audio')])
      expect(answer(error)).toMatchObject({ kind: 'fail', error: { code: error.code } })
  })

  test('as one of the service if no error was thrown, or one that only looks like ours', () => {
    for (const error of [undefined, null, 'text', Object.assign(new Error('x'), { code: 'SHUTTING_DOWN' })])
      expect(answer(error)).toMatchObject({ kind: 'requeue', delayMs: 1000, onShutdown: false })
    const alike = Object.assign(new Error('x'), { code: 'LEASE_LOST' })
    expect(answer(alike, { attempts: 3 })).toMatchObject({ kind: 'fail', error: { code: 'INTERNAL_ERROR' } })
  })

  test('with the usage, only for a job that a quota counts', () => {
    expect(answer(canceled(), { metered: true })).toMatchObject({ usage: { bytes: 7, audioSeconds: 0 } })
    expect(answer(canceled(), { metered: false })).not.toHaveProperty('usage')
  })
})

test.each<[Partial<JobRecord>, object | undefined]>([
  [{}, undefined],
  [{ deadline: 1001, lapses: 2 }, undefined],
  [
    { deadline: 1000, cancelRequested: true },
    { code: 'TIMEOUT', reason: 'deadline' },
  ],
  [{ cancelRequested: true, lapses: 3 }, { code: 'CANCELED' }],
  [{ lapses: 3 }, { code: 'INTERNAL_ERROR', reason: 'worker_lost' }],
])('whether an attempt at 1000 may begin, with at most two lost workers: %j', (fields, hindrance) => {
  const found = hindranceOf({ ...job, ...fields }, 1000, 2)
  if (hindrance) expect(found).toMatchObject(hindrance)
  else expect(found).toBeUndefined()
})
