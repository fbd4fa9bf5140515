import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Waking, type WaitingJob } from '../../../src/core/engine/dispatch/waking.js'
import type { JobRecord } from '../../../src/core/engine/job/job.js'
import type { Worker } from '../../../src/core/engine/workers/worker.js'
import { silentLogger } from '../../../src/core/engine/ports/logger.js'
import { worker } from './worker-samples.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const job = (id: string): WaitingJob => ({ id, workflow: 'test/stems', pool: 'gpu' })

const fleet = (count: number, about?: (index: number) => Partial<Worker>) =>
  Array.from({ length: count }, (_, index) => worker(index, about?.(index)))

/** @param wakes how many workers a notification of the queue wakes */
function wakingOf(workers: Worker[] | Error, wakes: 'one' | 'all' = 'all') {
  /** Workers that each notification named; undefined: none, so all. */
  const told: (readonly string[] | undefined)[] = []
  const waits = new Set<string>()
  const gone = new Set<string>()
  const failing: Error[] = []
  let looks = 0
  const waking = new Waking({
    jobs: {
      get: async (id) => {
        looks++
        if (gone.has(id)) return undefined
        if (id === 'unreadable') throw new Error('away')
        return { status: waits.has(id) ? 'QUEUED' : 'STARTED' } as JobRecord
      },
    },
    queue: {
      traits: { scope: 'shared', wakes },
      notify: async ({ workers: meant } = {}) => {
        const failure = failing.shift()
        if (failure) throw failure
        told.push(meant)
      },
      subscribe: async () => ({ stop: async () => {} }),
      check: async () => {},
      close: async () => {},
    },
    workers: { known: () => (workers instanceof Error ? Promise.reject(workers) : Promise.resolve(workers)) },
    logger: silentLogger,
  })
  return { waking, told, waits, gone, failing, looks: () => looks }
}

test('a lone job wakes two of a thousand idle workers, and no others once it has begun', async () => {
  const { waking, told, looks } = wakingOf(fleet(1000))
  await waking.wake([job('a')])
  expect(told).toHaveLength(1)
  expect(new Set(told[0]).size).toBe(2)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(told).toHaveLength(1)
  expect(looks()).toBe(1)
})

test('a job that still waits a tenth of a second later wakes all', async () => {
  const { waking, told, waits } = wakingOf(fleet(1000))
  waits.add('b')
  await waking.wake([job('a')])
  await waking.wake([job('b')])
  await vi.advanceTimersByTimeAsync(99)
  expect(told).toHaveLength(2)
  await vi.advanceTimersByTimeAsync(1)
  expect(told).toEqual([expect.anything(), expect.anything(), undefined])
})

test('only workers that run such jobs and have room are notified first', async () => {
  const workers = fleet(1000, (index) => {
    if (index < 300) return { workflows: ['test/other'] }
    if (index < 600) return { labels: [] }
    return index < 990 ? { running: 1 } : {}
  })
  const { waking, told } = wakingOf(workers)
  for (let times = 0; times < 20; times++) await waking.wake([job(`${times}`)])
  const able = workers.slice(990).map(({ address }) => address)
  expect(told.flat().every((address) => able.includes(address))).toBe(true)
})

test('of these workers, those that have run the workflow recently are notified first', async () => {
  const workers = fleet(1000, (index) => (index === 7 || index === 8 ? { warm: ['test/stems'] } : {}))
  const { waking, told } = wakingOf(workers)
  await waking.wake([job('a')])
  expect(new Set(told[0])).toEqual(new Set(['a7', 'a8']))
  await waking.wake([{ ...job('b'), workflow: 'test/other' }])
  expect(told[1]).toBeUndefined()
})

test('a single worker that has run the workflow recently is notified first', async () => {
  const { waking, told } = wakingOf(fleet(1000, (index) => (index === 7 ? { warm: ['test/stems'] } : {})))
  await waking.wake([job('a')])
  expect(told).toEqual([['a7']])
})

test('the two are chosen one after the other, each at random', async () => {
  const { waking, told } = wakingOf(fleet(5))
  const random = vi.spyOn(Math, 'random').mockReturnValueOnce(0.99).mockReturnValueOnce(0)
  await waking.wake([job('a')])
  random.mockRestore()
  expect(told).toEqual([['a4', 'a0']])
})

test('a worker that is cordoned or drained is not notified', async () => {
  const workers = fleet(1000, (index) => (index < 990 ? { state: index % 2 ? 'cordoned' : 'draining' } : {}))
  const { waking, told } = wakingOf(workers)
  for (let times = 0; times < 20; times++) await waking.wake([job(`${times}`)])
  const able = workers.slice(990).map(({ address }) => address)
  expect(told.flat().every((address) => able.includes(address))).toBe(true)
})

test('as many jobs as there are workers wake all at once, as does a job that no known worker can run', async () => {
  const { waking, told } = wakingOf(fleet(10))
  await waking.wake(Array.from({ length: 10 }, (_, index) => job(`${index}`)))
  await waking.wake([{ ...job('b'), pool: 'tpu' }])
  await waking.wake()
  expect(told).toEqual([undefined, undefined, undefined])
})

test('many jobs in a tenth of a second cost one more notification and no look at each', async () => {
  const { waking, told, looks } = wakingOf(fleet(1000))
  for (let times = 0; times < 21; times++) await waking.wake([job(`${times}`)])
  await vi.advanceTimersByTimeAsync(1000)
  expect(looks()).toBe(0)
  expect(told.filter((meant) => meant === undefined)).toHaveLength(1)
})

test('a delayed job is checked after its delay, but not once the engine is closed', async () => {
  const { waking, told, waits } = wakingOf(fleet(1000))
  waits.add('a')
  await waking.wake([job('a')], { delayMs: 5000 })
  await vi.advanceTimersByTimeAsync(5099)
  expect(told).toHaveLength(1)
  await vi.advanceTimersByTimeAsync(1)
  expect(told).toHaveLength(2)
  await waking.wake([job('a')], { delayMs: 5000 })
  waking.close()
  await vi.advanceTimersByTimeAsync(60_000)
  expect(told).toHaveLength(3)
})

test('a few are notified if more than twice as many are known, and all if none are known', async () => {
  for (const [count, few] of [
    [4, undefined],
    [5, 2],
  ] as const) {
    const { waking, told } = wakingOf(fleet(count))
    await waking.wake([job('a')])
    expect(told.map((meant) => meant?.length)).toEqual([few])
  }
  const { waking, told } = wakingOf(new Error('away'))
  await waking.wake([job('a')])
  expect(told).toEqual([undefined])
})

test('jobs that are gone or cannot be read wake no worker, and twenty are checked', async () => {
  const { waking, told, gone, looks } = wakingOf(fleet(1000))
  gone.add('0')
  await waking.wake([job('unreadable')])
  for (let times = 0; times < 19; times++) await waking.wake([job(`${times}`)])
  await vi.advanceTimersByTimeAsync(1000)
  expect(looks()).toBe(20)
  expect(told.filter((meant) => meant === undefined)).toEqual([])
  // A checked job is not checked again.
  await waking.wake([job('later')])
  await vi.advanceTimersByTimeAsync(1000)
  expect(looks()).toBe(21)
})

test('nothing is left to wait for once it is closed, and what is due at once is not checked before', async () => {
  const { waking, looks } = wakingOf(fleet(1000))
  await waking.wake([job('a')], { delayMs: 5000 })
  await waking.wake([job('b')])
  expect([vi.getTimerCount(), looks()]).toEqual([2, 0])
  await vi.advanceTimersByTimeAsync(100)
  expect([vi.getTimerCount(), looks()]).toEqual([1, 1])
  waking.close()
  expect(vi.getTimerCount()).toBe(0)
})

test('a queue that cannot notify does not cause a failure, and a closed engine sends no notification', async () => {
  const { waking, told, failing } = wakingOf(fleet(1000))
  failing.push(new Error('away'))
  await waking.wake()
  expect([failing, told]).toEqual([[], []])
  waking.close()
  await waking.wake()
  await waking.wake([job('a')])
  expect([told, vi.getTimerCount()]).toEqual([[], 0])
})

test('a queue whose notification wakes one worker is notified once, without names', async () => {
  const { waking, told, looks } = wakingOf(fleet(1000), 'one')
  await waking.wake([job('a')])
  await vi.advanceTimersByTimeAsync(60_000)
  expect(told).toEqual([undefined])
  expect(looks()).toBe(0)
})
