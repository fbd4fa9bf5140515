import { describe, expect, test } from 'vitest'
import { memoryJobs } from '../../src/adapters/memory.js'
import { sampleJob, sampleOutputs } from '../../src/contract/job-samples.js'
import { estimateOf, type Throughput, Throughputs } from '../../src/core/engine/queries/estimate.js'
import type { JobRecord } from '../../src/core/engine/job/job.js'
import type { JobPage } from '../../src/core/engine/ports/job-store.js'
import type { Worker } from '../../src/core/engine/workers/worker.js'
import { steppingClock } from './harness.js'

const measured: Throughput = { runMs: 60_000, anyRunMs: 40_000, running: 2, isPaused: false }
const waiting: JobRecord = { ...sampleJob(), status: 'QUEUED' }
const now = 1_700_000_000_000

function running(progress: number, token = 1): JobRecord {
  const attempt = {
    token,
    worker: 'w',
    startedAt: now - 20_000,
    endedAt: null,
    outcome: 'running',
    reason: null,
  } as const
  return { ...sampleJob(), status: 'STARTED', progress, history: [attempt] }
}

describe('an estimate', () => {
  test('of a job that waits follows from its position, the jobs that run and how long they take', () => {
    // Two run, of 40 s each: one begins every 20 s.
    expect(estimateOf(waiting, 3, measured, now)).toEqual({ startsAt: now + 60_000, endsAt: now + 120_000 })
    expect(estimateOf(waiting, 1, measured, now)).toEqual({ startsAt: now + 20_000, endsAt: now + 80_000 })
  })

  test('of a job that runs follows from its own progress, once that tells', () => {
    expect(estimateOf(running(0.25), undefined, measured, now)).toEqual({ startsAt: null, endsAt: now + 60_000 })
    // So early, others of its workflow tell more.
    expect(estimateOf(running(0.05), undefined, measured, now)).toEqual({ startsAt: null, endsAt: now + 57_000 })
    // What an earlier attempt kept was not done in these 20 s.
    expect(estimateOf(running(0.5, 2), undefined, measured, now)).toEqual({ startsAt: null, endsAt: now + 30_000 })
  })

  test('is none where nothing was measured that tells', () => {
    const none: [string, JobRecord, number | undefined, Partial<Throughput>][] = [
      ['no job of the workflow has succeeded', waiting, 1, { runMs: undefined }],
      ['none of the application runs', waiting, 1, { running: 0 }],
      ['it is paused', waiting, 1, { isPaused: true }],
      ['it is not due yet', waiting, undefined, {}],
      ['it has just begun, as the first of its workflow', running(0.05), undefined, { runMs: undefined }],
    ]
    for (const [why, job, position, change] of none)
      expect(estimateOf(job, position, { ...measured, ...change }, now), why).toBeUndefined()
  })
})

test('throughput is what workers tell of a workflow, else what attempts of the last successful jobs took', async () => {
  const clock = steppingClock()
  const jobs = memoryJobs({ clock: clock.now })
  const messages: [] = []
  async function run(ms: number, workflow: string, app: string, fails = false) {
    const { job } = await jobs.create({ ...sampleJob(), workflow, app })
    const claimed = await jobs.claim({ id: job.id, owner: 'w', leaseMs: 1_000_000 })
    clock.advance(ms)
    const claim = { token: claimed?.token ?? 0, retentionMs: 1_000_000, messages }
    const error = { code: 'BAD_INPUT', title: '', message: '', reason: null, retryable: false } as const
    const end = fails
      ? ({ kind: 'fail', ...claim, error } as const)
      : ({ kind: 'succeed', ...claim, outputs: sampleOutputs(job.id, 1), details: {} } as const)
    expect(await jobs.apply(job.id, end)).toBeDefined()
  }
  for (const ms of [50_000, 70_000, 60_000]) await run(ms, 'long', 'ann')
  for (const ms of [1_000, 2_000]) await run(ms, 'short', 'ann')
  await run(900_000, 'long', 'ann', true)
  await run(80_000, 'long', 'bob')
  for (let i = 0; i < 2; i++) await jobs.create({ ...sampleJob(), workflow: 'long', app: 'ann' })
  await jobs.claim({ owner: 'w', leaseMs: 1000 })
  await jobs.changeRule({ kind: 'workflow', id: 'short' }, { state: 'paused' })

  const worker: Worker = {
    owner: 'w',
    workflows: ['long', 'short'],
    labels: [],
    state: 'open',
    warm: [],
    slots: 1,
    running: 1,
    startedAt: now,
    seenAt: now,
    durations: { short: { jobs: 2, seconds: 3 } },
  }
  const asked: JobPage[] = []
  const list = (page: JobPage) => {
    asked.push(page)
    return jobs.list(page)
  }
  const throughputs = new Throughputs({ ...jobs, list }, { recent: async () => [worker, worker] })
  const long = await throughputs.of({ app: 'ann', workflow: 'long' })
  expect(long).toEqual({ runMs: 60_000, anyRunMs: 50_000, running: 1, isPaused: false })
  expect(await throughputs.of({ app: 'bob', workflow: 'short' })).toEqual({
    runMs: 1_500,
    anyRunMs: 80_000,
    running: 0,
    isPaused: true,
  })
  // The last successes of a whole store would have to be looked for behind all that waits.
  expect(asked.every(({ app }) => app !== undefined)).toBe(true)
  // Thousands of clients that ask at a time cost what one costs.
  expect(await Promise.all(Array.from({ length: 3 }, () => throughputs.of({ app: 'ann', workflow: 'long' })))).toEqual([
    long,
    long,
    long,
  ])
})
