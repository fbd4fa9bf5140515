import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { sampleJob } from '../../../src/contract/job-samples.js'
import { runToEnd } from '../../../src/core/engine/dispatch/run-to-end.js'
import type { JobRecord } from '../../../src/core/engine/job/job.js'
import { resumeTime, stopTime } from '../../engine/stopped-time.js'

beforeEach(stopTime)
afterEach(resumeTime)

type Listener = (event: { job: JobRecord }) => void

/** Runs job `id` with these answers of the dispatcher and of the store, one after another; the last one repeats. */
function running(
  id: string | undefined,
  runs: (JobRecord | undefined)[],
  stored: (JobRecord | undefined)[] = [],
  signal?: AbortSignal,
) {
  const listeners = new Map<string, Listener>()
  const asked: { ms: number; id: string | undefined; signal: AbortSignal | undefined }[] = []
  const startedAt = performance.now()
  const next = (answers: (JobRecord | undefined)[]) => (answers.length > 1 ? answers.shift() : answers[0])
  const closing = new AbortController()
  const ports = {
    jobs: { get: async () => next(stored) },
    events: {
      on: (name: string, listener: Listener) => void listeners.set(name, listener),
      off: (name: string, listener: Listener) => listeners.get(name) === listener && listeners.delete(name),
    },
    dispatcher: {
      run: async (asking: string | undefined, given: AbortSignal | undefined) => {
        asked.push({ ms: Math.round(performance.now() - startedAt), id: asking, signal: given })
        return next(runs)
      },
    },
  } as unknown as Parameters<typeof runToEnd>[0]
  const result = runToEnd(ports, id, { signal, closing: closing.signal })
  result.catch(() => {})
  return { result, listeners, asked, closing, times: () => asked.map(({ ms }) => ms) }
}

const queued = sampleJob()
const done = sampleJob({ status: 'SUCCEEDED' })

test('a job that ends in its first attempt is returned', async () => {
  const { signal } = new AbortController()
  const { result, asked } = running(done.id, [done], [], signal)
  expect(await result).toBe(done)
  expect(asked).toEqual([{ ms: 0, id: done.id, signal }])
})

test('undefined is returned if there is nothing to run or the job does not exist', async () => {
  expect(await running(undefined, [undefined]).result).toBeUndefined()
  expect(await running('gone', [undefined], [undefined]).result).toBeUndefined()
})

test('the job that was next is run until it has ended', async () => {
  const { result, asked } = running(undefined, [queued, done])
  await vi.advanceTimersByTimeAsync(25)
  expect(await result).toBe(done)
  expect(asked.map(({ id }) => id)).toEqual([undefined, queued.id])
})

test('a job that another worker runs is checked again after waits that double up to a second', async () => {
  const { result, times, listeners } = running(
    queued.id,
    [undefined],
    [...Array.from({ length: 8 }, () => queued), done],
  )
  await vi.advanceTimersByTimeAsync(10_000)
  expect(await result).toBe(done)
  expect(times()).toEqual([0, 25, 75, 175, 375, 775, 1575, 2575, 3575])
  expect(listeners.size).toBe(0)
})

test.each(['job.requeued', 'job.succeeded', 'job.failed', 'job.deleted'])(
  'it is checked at once after %s, but not after that of another job',
  async (name) => {
    const { result, times, listeners } = running(queued.id, [undefined], [queued, queued, queued, done])
    await vi.advanceTimersByTimeAsync(40)
    listeners.get(name)?.({ job: sampleJob() })
    await vi.advanceTimersByTimeAsync(10)
    expect(times()).toEqual([0, 25])
    listeners.get(name)?.({ job: queued })
    await vi.advanceTimersByTimeAsync(0)
    expect(times()).toEqual([0, 25, 50])
    await vi.advanceTimersByTimeAsync(1000)
    expect(await result).toBe(done)
  },
)

test('the signal and the end of the engine end the wait with their reasons', async () => {
  const stopped = new AbortController()
  const waiting = running(queued.id, [undefined], [queued], stopped.signal)
  await vi.advanceTimersByTimeAsync(10)
  stopped.abort(new Error('enough'))
  await expect(waiting.result).rejects.toThrow('enough')
  const again = running(queued.id, [undefined], [queued], stopped.signal)
  await expect(again.result).rejects.toThrow('enough')
  expect(again.asked).toEqual([])
  for (const signal of [undefined, new AbortController().signal]) {
    const { result, closing } = running(queued.id, [undefined], [queued], signal)
    await vi.advanceTimersByTimeAsync(10)
    closing.abort(new Error('closed'))
    await expect(result).rejects.toThrow('closed')
  }
})
