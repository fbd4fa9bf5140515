import { expect, test, vi } from 'vitest'
import { memoryBlobs, memoryJobs } from '../../src/adapters/memory.js'
import { sampleJob } from '../../src/contract/job-samples.js'
import { remembered } from '../../src/core/engine/limits/remembered.js'
import type { JobRecord } from '../../src/core/engine/job/job.js'
import type { JobStore } from '../../src/core/engine/ports/job-store.js'
import { Estimates } from '../../src/core/engine/queries/estimate.js'
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
