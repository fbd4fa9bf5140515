import { expect, test, vi } from 'vitest'
import { memoryJobs } from '../../src/adapters/memory.js'
import { sampleJob } from '../../src/contract/job-samples.js'
import { restMs } from '../../src/core/engine/limits/rested.js'
import { bulk, changedRows } from '../../src/core/engine/intake/bulk.js'
import type { JobPage } from '../../src/core/engine/ports/job-store.js'
import { searchJobs } from '../../src/core/engine/queries/job-search.js'
import { readSlices, sliceRows } from '../../src/core/engine/queries/job-slices.js'
import { QueryTurns } from '../../src/http/routing/query-turns.js'

async function storeOf(count: number) {
  const jobs = memoryJobs()
  for (let n = 0; n < count; n++) await jobs.create(sampleJob())
  return jobs
}

/** Counts the passes of the event loop until it is stopped. */
function loopPasses() {
  let passes = 0
  let immediate = setImmediate(function count() {
    passes++
    immediate = setImmediate(count)
  })
  return { count: () => passes, stop: () => clearImmediate(immediate) }
}

test('a page is read in slices, and others are served between them', async () => {
  const jobs = await storeOf(30)
  const passes = loopPasses()
  const slices: { rows: number; pass: number }[] = []
  const read: string[] = []
  await readSlices({ limit: 25, offset: 2 }, jobs.list, (some) => {
    slices.push({ rows: some.length, pass: passes.count() })
    read.push(...some.map(({ id }) => id))
  })
  passes.stop()
  expect(slices.map(({ rows }) => rows)).toEqual([sliceRows, sliceRows, sliceRows, 1])
  for (const [index, { pass }] of slices.entries()) if (index > 0) expect(pass).toBeGreaterThan(slices[index - 1]!.pass)
  expect(read).toEqual((await jobs.list({ limit: 25, offset: 2 })).map(({ id }) => id))
})

test.each([
  ['with a condition', (job: { id: string }) => job.id !== ''],
  ['for a page', undefined],
])('a search %s reads a few jobs at a time, and others are served in between', async (_, where) => {
  const jobs = await storeOf(60)
  const passes = loopPasses()
  const list = vi.fn(jobs.list)
  const readAt: number[] = []
  const found = await searchJobs({ limit: 50 }, where, (page) => {
    readAt.push(passes.count())
    return list(page)
  })
  passes.stop()
  expect(found.jobs.map(({ id }) => id)).toEqual((await jobs.list({ limit: 50 })).map(({ id }) => id))
  expect(found.next).toMatchObject({ id: found.jobs.at(-1)?.id })
  expect(Math.max(...list.mock.calls.map(([{ limit }]) => limit))).toBeLessThanOrEqual(10)
  expect(new Set(readAt).size).toBe(readAt.length)
})

test('a slice rests for its own time, not for that of others while its store searched', async () => {
  const jobs = await storeOf(3)
  const told: number[] = []
  const search = async (page: JobPage) => {
    await new Promise((resolve) => setImmediate(resolve))
    return await jobs.list(page)
  }
  await readSlices(
    { limit: 3 },
    search,
    () => {},
    (work) => work((ms) => told.push(ms)),
  )
  expect(told).toEqual([expect.any(Number)])
  // The event loop was blocked for 10 ms, 0.5 of them by the slice.
  expect([restMs(10, 0.5), restMs(10), restMs(100), restMs(1, 2)]).toEqual([2, 40, 50, 4])
})

test('a bulk change reads and changes a few jobs at a time, and others are served in between', async () => {
  const jobs = await storeOf(30)
  const passes = loopPasses()
  const list = vi.fn(jobs.list)
  const changedAt: number[] = []
  const act = async (job: { id: string }) => {
    changedAt.push(passes.count())
    return jobs.apply(job.id, { kind: 'delete' })
  }
  const report = await bulk('delete', {}, { limit: 20 }, { list, act })
  passes.stop()
  expect(report).toMatchObject({ done: 20, next: { id: expect.any(String) } })
  // One extra row shows whether there are more.
  expect(Math.max(...list.mock.calls.map(([{ limit }]) => limit))).toBe(changedRows + 1)
  const perPass = new Map<number, number>()
  for (const pass of changedAt) perPass.set(pass, (perPass.get(pass) ?? 0) + 1)
  expect(Math.max(...perPass.values())).toBeLessThanOrEqual(changedRows)
  const rest = await bulk('delete', {}, { limit: 20, after: report.next }, { list, act })
  expect(rest).toEqual({ done: 10, refused: [], isFull: false })
})

test('large requests of an application come one after another, and applications take turns by slice', async () => {
  const turns = new QueryTurns()
  const order: string[] = []
  const request = (app: string, name: string) =>
    turns.request(app, async () => {
      for (let n = 0; n < 3; n++) await turns.slice(app, async () => void order.push(name))
    })
  const busy = [request('a', 'a1'), request('a', 'a2')]
  await Promise.all([...busy, ...['b', 'c', 'd'].map((app) => request(app, app))])
  expect(order.filter((name) => name.startsWith('a'))).toEqual(['a1', 'a1', 'a1', 'a2', 'a2', 'a2'])
  expect(new Set(order.slice(0, 4))).toEqual(new Set(['a1', 'b', 'c', 'd']))
})

test('a slice is left for those that seldom request one, however long the slices of the others take', async () => {
  const turns = new QueryTurns()
  const busy = ['a', 'b', 'c', 'd']
  await Promise.all(busy.flatMap((app) => Array.from({ length: 40 }, () => turns.slice(app, async () => {}))))
  let end = () => {}
  const ended = new Promise<void>((resolve) => (end = resolve))
  const begun: string[] = []
  const long = (app: string) =>
    turns.slice(app, async () => {
      begun.push(app)
      await ended
    })
  const slices = busy.map(long)
  // Earlier slices are still resting.
  await vi.waitFor(() => expect(begun).toHaveLength(2))
  slices.push(...['seldom', ...busy].map(long))
  await new Promise((resolve) => setImmediate(resolve))
  expect(begun).toHaveLength(3)
  expect(begun[2]).toBe('seldom')
  end()
  await Promise.all(slices)
})

test('a slice is answered before its rest, which the next one of its application waits for', async () => {
  const turns = new QueryTurns()
  const busyFor = (ms: number) => async () => {
    for (const end = performance.now() + ms; performance.now() < end;);
  }
  const rests: number[] = []
  for (let n = 0; n < 3; n++) {
    await turns.slice('a', busyFor(5))
    const answeredAt = performance.now()
    await turns.slice('a', async () => void rests.push(performance.now() - answeredAt))
  }
  // Four times as long as the work; a timer may fire a millisecond early.
  expect(Math.min(...rests)).toBeGreaterThan(18)
  await turns.slice('a', busyFor(5))
  const order: string[] = []
  await Promise.all([
    turns.slice('a', async () => void order.push('a')),
    turns.slice('b', async () => void order.push('b')),
  ])
  expect(order).toEqual(['b', 'a'])
})

test('an application may have 50 large requests waiting, which end when their client leaves', async () => {
  const turns = new QueryTurns()
  let end = () => {}
  const first = turns.request('a', () => new Promise<void>((resolve) => (end = resolve)))
  const leaving = new AbortController()
  const left = turns.request('a', async () => {}, leaving.signal)
  const waiting = Array.from({ length: 49 }, () => turns.request('a', async () => {}))
  await expect(turns.request('a', async () => {})).rejects.toMatchObject({ code: 'RATE_LIMITED' })
  await turns.request('b', async () => {})
  leaving.abort(new Error('left'))
  await expect(left).rejects.toThrow('left')
  waiting.push(turns.request('a', async () => {}))
  await vi.waitFor(() => end())
  await Promise.all([first, ...waiting])
})
