import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { promises, share } from '../../benchmarks/estimates/promises.mjs'
import { memoryApplications, memoryBlobs, memoryJobs } from '../../src/adapters/memory.js'
import { sampleJob } from '../../src/contract/job-samples.js'
import { timeLeft } from '../../src/core/engine/queries/estimate.js'
import { forecast, type QueueState } from '../../src/core/engine/queries/queue-forecast.js'
import { workHistory } from '../../src/core/engine/queries/work-history.js'
import type { JobRecord } from '../../src/core/engine/job/job.js'
import { ledgerEntry } from '../../src/core/engine/job/ledger.js'
import type { Worker } from '../../src/core/engine/workers/worker.js'
import { createEngine, defineWorkflow } from '../../src/index.js'
import { steppingClock, testEngine, textWorkflow } from './harness.js'

const now = 1_700_000_000_000

describe('the time left of a running job', () => {
  const running = (progress: number, token = 1) => ({
    progress,
    history: [
      { token, worker: 'w', startedAt: now - 20_000, endedAt: null, outcome: 'running' as const, reason: null },
    ],
  })

  test('follows from its own progress, from a tenth on, if there are no other jobs to compare with', () => {
    expect(timeLeft(running(0.25), undefined, now)).toBe(60_000)
    expect(timeLeft(running(0.09), undefined, now)).toBeUndefined()
  })

  test('follows from what others took, and more and more from its own progress', () => {
    expect(timeLeft(running(0), 100_000, now)).toBe(100_000)
    // Its own progress gives 400 s, the others 100 s: here with equal weights.
    expect(timeLeft(running(0.05), 100_000, now)).toBeCloseTo(0.95 * 250_000)
    expect(timeLeft(running(0.8), 100_000, now)).toBeCloseTo(0.2 * (25_000 + 75_000 / 17), -1)
    // Work kept from an earlier attempt was not done in these 20 s.
    expect(timeLeft(running(0.5, 2), 100_000, now)).toBe(50_000)
  })

  test('never counts to zero while nothing moves', () => {
    const said = [0, 20_000, 200_000, 2_000_000].map((ms) => timeLeft(running(0.9), 25_000, now + ms) ?? 0)
    expect(said).toEqual(said.toSorted((a, b) => a - b))
    expect(said[0]).toBeGreaterThan(2000)
  })
})

test('times are told by the clock of the store, whatever that of the node says', async () => {
  const clock = steppingClock(now)
  const { engine, parts, submit } = testEngine(textWorkflow(), {}, { jobs: memoryJobs({ clock: clock.now }) })
  const { id } = await submit()
  const notBefore = now + 60_000
  const { job: later } = await engine.submit({ app: 'app', workflow: 'test/text', notBefore })
  await parts.jobs.claim({ id, owner: 'w', leaseMs: 60_000 })
  clock.advance(10_000)
  const beat = { kind: 'heartbeat', token: 1, leaseMs: 60_000, progress: 0.5, stage: null } as const
  const running = await parts.jobs.apply(id, beat)
  expect(running && (await engine.estimate(running))).toEqual({ startsAt: null, endsAt: now + 20_000 })
  expect(await engine.waiting(later)).toMatchObject({ reason: 'scheduled' })
  await engine.close()
})

interface Done {
  seconds: number
  bytes?: number
  ms: number
  name?: string
  params?: Record<string, unknown>
  worker?: string
}

function done({ seconds, bytes = 0, ms, name = 'a song', params = {}, worker = 'w' }: Done): JobRecord {
  const job = { ...sampleJob(), name, params, status: 'SUCCEEDED' as const }
  const history = [{ token: 1, worker, startedAt: now, endedAt: now + ms, outcome: 'succeeded' as const, reason: null }]
  return { ...job, history, settlement: ledgerEntry(job, { audioSeconds: seconds, bytes }) }
}

describe('the work of a job', () => {
  const waiting = (name: string, params = {}): JobRecord => ({ ...sampleJob(), name, params })

  test('is a base and an amount for each second of audio, by the bytes of its format', () => {
    const songs = [
      { name: 'a.wav', seconds: 100, bytes: 17_640_000, ms: 12_000 },
      { name: 'b.mp3', seconds: 400, bytes: 12_800_000, ms: 42_000 },
    ]
    const history = workHistory(songs.map(done), [])
    expect(history(waiting('c.wav'), 176_400_000)).toBeCloseTo(102_000)
    expect(history(waiting('c.mp3'), 32_000_000)).toBeCloseTo(102_000)
    // No job had this format, so its usual values are used.
    expect(history(waiting('c.flac'), 100_000_000)).toBeCloseTo(102_000)
  })

  test('follows from the bytes if the length is unknown, and from the usual time if nothing is known', () => {
    const history = workHistory(
      [1, 2, 3].map((n) => done({ seconds: 0, bytes: n * 1e6, ms: n * 10_000 })),
      [],
    )
    expect(history(waiting('song'), 5e6)).toBeCloseTo(50_000)
    expect(history(waiting('song'), undefined)).toBe(20_000)
    expect(workHistory([], [])(waiting('song'), 5e6)).toBeUndefined()
  })

  test('follows from jobs of the same model and worker, where there are any', () => {
    const of = (model: string, worker: string, ms: number) =>
      Array.from({ length: 5 }, () => done({ seconds: 0, ms, params: { model }, worker }))
    const history = workHistory([...of('basic', 'slow', 30_000), ...of('basic', 'fast', 10_000)], [])
    expect(history(waiting('song', { model: 'basic' }), undefined, 'slow')).toBe(30_000)
    expect(history(waiting('song', { model: 'basic' }), undefined, 'fast')).toBe(10_000)
    const models = workHistory([...of('best', 'w', 90_000), ...of('basic', 'w', 10_000)], [])
    expect(models(waiting('song', { model: 'best' }), undefined)).toBe(90_000)
    expect(models(waiting('song', { model: 'basic' }), undefined)).toBe(10_000)
  })
})

describe('the forecast of a queue', () => {
  const worker = (owner: string, fields: Partial<Worker> = {}): Worker => ({
    owner,
    workflows: ['service/sample'],
    labels: [],
    state: 'open',
    warm: [],
    slots: 1,
    running: 0,
    startedAt: now,
    seenAt: now,
    durations: {},
    ...fields,
  })
  const job = (id: string, fields: Partial<JobRecord> = {}): JobRecord => ({ ...sampleJob(), id, ...fields })
  const held = (id: string, owner: string) => job(id, { lease: { owner, token: 1, nonce: '', until: now } })
  const starts = (state: Partial<QueueState>) => {
    const times = forecast({ running: [], waiting: [], workers: [worker('a')], rules: [], ...state }, 0)
    return Object.fromEntries([...times].map(([id, { startsAt }]) => [id, startsAt]))
  }
  const waiting = ['1', '2', '3'].map((id) => ({ job: job(id), workMs: 10 }))

  test('gives each job to the slot that is free first', () => {
    expect(starts({ waiting })).toEqual({ 1: 0, 2: 10, 3: 20 })
    expect(starts({ waiting, running: [{ job: held('r', 'a'), leftMs: 5 }] })).toEqual({ 1: 5, 2: 15, 3: 25 })
    expect(starts({ waiting, workers: [worker('a', { slots: 2 }), worker('b')] })).toEqual({ 1: 0, 2: 0, 3: 0 })
  })

  test('knows which worker takes a job, and which takes none', () => {
    const workers = [worker('a', { labels: ['gpu'] }), worker('b'), worker('c', { state: 'draining' })]
    const gpu = [{ job: job('gpu', { pool: 'gpu' }), workMs: 20 }, ...waiting]
    expect(starts({ workers, waiting: gpu })).toEqual({ gpu: 0, 1: 0, 2: 10, 3: 20 })
    const others = [{ job: job('other', { workflow: 'service/other' }), workMs: 10 }]
    expect(starts({ waiting: others })).toEqual({})
  })

  test('waits for the jobs that count against a limit', () => {
    const rules = [{ target: { kind: 'application' as const, id: 'app-1' }, state: 'open' as const, maxRunning: 1 }]
    const other = { job: job('4', { app: 'app-2' }), workMs: 10 }
    const workers = [worker('a', { slots: 2 })]
    expect(starts({ workers, rules, waiting: [...waiting, other] })).toEqual({ 1: 0, 4: 0, 2: 10, 3: 20 })
  })

  test('of a host without workers goes by the jobs that run', () => {
    expect(starts({ waiting, workers: [] })).toEqual({})
    expect(starts({ waiting, workers: [], running: [{ job: held('r', 'x'), leftMs: 5 }] })).toEqual({
      1: 5,
      2: 15,
      3: 25,
    })
  })
})

test.each([1, 4])('estimates for songs of 10 s to an hour are accurate, with workers: %i', async (workers) => {
  const parts = { createEngine, defineWorkflow, memoryApplications, memoryBlobs, memoryJobs, z }
  const { ratios, unsaid } = await promises(parts, { songs: 40, workers, seed: 3 })
  expect(share(ratios, 0.5)).toBeLessThan(1.5)
  expect(share(ratios, 0.9)).toBeLessThan(2)
  // Only the first songs have no estimate.
  expect(unsaid).toBeLessThan(ratios.length / 5)
})
