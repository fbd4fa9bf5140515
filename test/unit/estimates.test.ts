import { describe, expect, test, vi } from 'vitest'
import { memoryBlobs, memoryJobs } from '../../src/adapters/memory.js'
import { sampleJob } from '../../src/contract/job-samples.js'
import { remembered } from '../../src/core/engine/limits/remembered.js'
import type { JobRecord } from '../../src/core/engine/job/job.js'
import type { JobStore } from '../../src/core/engine/ports/job-store.js'
import { Estimates, positionsOf } from '../../src/core/engine/queries/estimate.js'
import { StoreClock } from '../../src/core/engine/store-clock.js'

const endedAfter = (ms: number) =>
  sampleJob({ status: 'SUCCEEDED', history: [{ token: 1, startedAt: 0, endedAt: ms }] as JobRecord['history'] })

test('an estimate reads what earlier jobs took a few at a time, and serves others in between', async () => {
  const earlier = Array.from({ length: 60 }, () => endedAfter(1000))
  let passes = 0
  const readIn: [rows: number, pass: number][] = []
  const list: JobStore['list'] = async ({ limit, after }) => {
    readIn.push([limit, passes])
    const start = after ? earlier.findIndex(({ id }) => id === after.id) + 1 : 0
    return earlier.slice(start, start + limit)
  }
  const jobs: JobStore = { ...memoryJobs(), list, queue: async () => ({ running: [], waiting: [] }) }
  const estimates = new Estimates({
    jobs,
    clock: new StoreClock(jobs),
    blobs: memoryBlobs(),
    workers: { recent: async () => [] },
    workflows: { get: () => undefined },
  })
  let isOver = false
  const counting = () => {
    passes++
    if (!isOver) setImmediate(counting)
  }
  setImmediate(counting)
  const started = sampleJob({ status: 'STARTED', progress: 0.5, history: [] })
  expect(await estimates.of(started)).toMatchObject({ startsAt: null })
  isOver = true
  expect(readIn.map(([rows]) => rows)).toEqual([8, 8, 8, 8, 8, 8, 2])
  expect(new Set(readIn.map(([, pass]) => pass)).size).toBe(7)
})

test('a cached estimate is shown while the next is read, unless it is too old', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  try {
    const answers: ((value: number) => void)[] = []
    const ask = remembered(() => new Promise<number>((resolve) => answers.push(resolve)), 10, 50)
    const first = ask()
    answers[0]!(1)
    expect(await first).toBe(1)
    vi.advanceTimersByTime(20)
    expect(await ask()).toBe(1)
    expect(await ask()).toBe(1)
    expect(answers).toHaveLength(2)
    vi.advanceTimersByTime(40)
    const second = ask()
    answers[1]!(2)
    expect(await second).toBe(2)
    expect(answers).toHaveLength(2)
  } finally {
    vi.useRealTimers()
  }
})

describe('the places of several jobs in the queue', () => {
  /** Jobs at these places, newest first as in lists, and the number of questions to the store. */
  async function placesOf(places: (number | undefined)[], changes: Partial<JobRecord> = {}) {
    const asked: string[] = []
    const ahead = async (id: string) => {
      asked.push(id)
      const place = places[Number(id)]
      return place === undefined ? undefined : Math.min(place, 1001) - 1
    }
    const jobs = { ahead } as unknown as JobStore
    const made = places.map((place, index) => sampleJob({ id: String(index), createdAt: place ?? 0, ...changes }))
    const found = await positionsOf({ jobs, clock: { time: async () => 10_000 } }, made)
    return { found: places.map((_, index) => found.get(String(index))), asked: asked.length }
  }

  test('are told by the first and the last if no other job is between them', async () => {
    expect(await placesOf([9, 8, 7, 6, 5])).toEqual({ found: [9, 8, 7, 6, 5], asked: 2 })
    expect(await placesOf([4, 3])).toMatchObject({ found: [4, 3] })
    expect(await placesOf([1005, 1004, 1003])).toEqual({ found: [1001, 1001, 1001], asked: 2 })
  })

  test('are asked for one by one if others are between them, or one waits no more', async () => {
    expect(await placesOf([9, 8, 3])).toMatchObject({ found: [9, 8, 3] })
    expect(await placesOf([1007, 1005, 999])).toMatchObject({ found: [1001, 1001, 999] })
    expect(await placesOf([3, 2, undefined])).toMatchObject({ found: [3, 2, undefined] })
  })

  test('are not asked for jobs that do not wait', async () => {
    expect(await placesOf([2, 1], { notBefore: 10_001 })).toEqual({ found: [undefined, undefined], asked: 0 })
    expect(await placesOf([2, 1], { status: 'STARTED' })).toEqual({ found: [undefined, undefined], asked: 0 })
    expect(await placesOf([])).toEqual({ found: [], asked: 0 })
  })

  test('follow the priority first', async () => {
    const asked: string[] = []
    const jobs = { ahead: async (id: string) => (asked.push(id), id === 'late' ? 0 : 1) } as unknown as JobStore
    const two = [sampleJob({ id: 'early', createdAt: 1 }), sampleJob({ id: 'late', createdAt: 2, priority: 2 })]
    const found = await positionsOf({ jobs, clock: { time: async () => 10_000 } }, two)
    expect([found.get('early'), found.get('late'), asked]).toEqual([2, 1, ['late', 'early']])
  })
})
