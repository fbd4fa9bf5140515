import { afterEach, describe, expect, test, vi } from 'vitest'
import { batched } from '../../src/adapters/stores/shared/batched.js'
import { DocumentMap } from '../../src/adapters/stores/shared/document-map.js'
import { DueQueue } from '../../src/adapters/stores/shared/due-queue.js'
import { DueQueues } from '../../src/adapters/stores/shared/due-queues.js'
import { isDue } from '../../src/adapters/stores/shared/is-due.js'
import { entryOf, LedgerEntries } from '../../src/adapters/stores/shared/ledger-entries.js'
import { mergedBacklog } from '../../src/adapters/stores/shared/merged-backlog.js'
import { copyOfPlain, plainCopy } from '../../src/adapters/stores/shared/plain-copy.js'
import { repeatable } from '../../src/adapters/stores/shared/repeatable.js'
import { begunOf, RunningLanes } from '../../src/adapters/stores/shared/running-lanes.js'
import { ruleOfRow } from '../../src/adapters/stores/shared/rule-of-row.js'
import { UnreadableRows } from '../../src/adapters/stores/shared/unreadable-rows.js'
import { sampleJob } from '../../src/contract/job-samples.js'
import { type LedgerEntry, ledgerEntry } from '../../src/core/engine/job/ledger.js'
import { gate } from '../engine/harness.js'

describe('calls that are batched', () => {
  /** Waits until all calls so far have been batched. */
  const gathered = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))

  test('are gathered while others run, up to a number of calls and of batches at a time', async () => {
    const batches: number[][] = []
    const gates: ReturnType<typeof gate<void>>[] = []
    const call = batched(
      async (items: number[]) => {
        batches.push(items)
        const running = gate<void>()
        gates.push(running)
        await running.opened
        return items.map((item) => item * 10)
      },
      { maxItems: 2, parallel: 2 },
    )
    const results = [1, 2, 3, 4, 5, 6, 7].map(call)
    expect(batches).toEqual([])
    await gathered()
    await gathered()
    expect(batches).toEqual([
      [1, 2],
      [3, 4],
    ])
    gates[0]?.open()
    await gathered()
    expect(batches.slice(2)).toEqual([[5, 6]])
    for (const running of gates) running.open()
    await gathered()
    expect(batches.slice(3)).toEqual([[7]])
    gates.at(-1)?.open()
    expect(await Promise.all(results)).toEqual([10, 20, 30, 40, 50, 60, 70])
    const later = call(8)
    await gathered()
    gates.at(-1)?.open()
    expect(await later).toBe(80)
    expect(batches.length).toBe(5)
  })

  test('do not wait forever for one that does not answer', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const batches: number[][] = []
    const hanging = gate<void>()
    const call = batched(
      async (items: number[]) => {
        batches.push(items)
        if (items.includes(1)) await hanging.opened
        return items
      },
      { maxItems: 10, parallel: 1 },
    )
    const first = call(1)
    await gathered()
    const others = [call(2), call(3)]
    vi.advanceTimersByTime(999)
    await gathered()
    expect(batches).toEqual([[1]])
    vi.advanceTimersByTime(1)
    expect(await Promise.all(others)).toEqual([2, 3])
    expect(batches).toEqual([[1], [2, 3]])
    hanging.open()
    expect(await first).toBe(1)
    // Its late answer does not admit two calls at once.
    const later = [call(4)]
    await gathered()
    later.push(call(5))
    expect(await Promise.all(later)).toEqual([4, 5])
    vi.useRealTimers()
  })

  test('fail together, or alone if one item is to blame', async () => {
    const asked: number[][] = []
    const run = async (items: number[]) => {
      asked.push(items)
      if (items.includes(2)) throw new Error('no 2')
      return items
    }
    const settled = async (options: Partial<Parameters<typeof batched>[1]>, items = [1, 2, 3]) => {
      asked.length = 0
      const call = batched(run, { maxItems: 10, parallel: 1, ...options })
      const results = await Promise.allSettled(items.map(call))
      return results.map(({ status }) => status === 'fulfilled')
    }
    expect(await settled({})).toEqual([false, false, false])
    expect(asked).toEqual([[1, 2, 3]])
    expect(await settled({ isItemsFault: () => true })).toEqual([true, false, true])
    expect(asked).toEqual([[1, 2, 3], [1], [2], [3]])
    expect(await settled({ isItemsFault: () => true }, [2, 3])).toEqual([false, true])
    const call = batched(run, { maxItems: 10, parallel: 1, isItemsFault: () => true })
    await expect(call(2)).rejects.toThrow('no 2')
    const short = batched(async () => [1], { maxItems: 10, parallel: 1 })
    for (const result of await Promise.allSettled([short(1), short(2)]))
      expect(result).toMatchObject({ reason: expect.any(RangeError) })
  })
})

describe('documents in memory', () => {
  const map = () => {
    const documents = new DocumentMap()
    for (const [key, dueInMs] of [
      ['b', 20],
      ['a', 10],
      ['c', null],
      ['d', 10],
    ] as const)
      documents.put({ kind: 'k', key, value: { key }, ttlMs: 100, dueInMs }, undefined, 0)
    return documents
  }
  const keys = (found: { key: string }[]) => found.map(({ key }) => key)

  test('expire at their time, and then begin anew', () => {
    const documents = map()
    expect(documents.get('a', 99)).toEqual({ key: 'a', version: 1, value: { key: 'a' } })
    expect(documents.get('a', 100)).toBeUndefined()
    expect([keys(documents.list({ limit: 9 }, 99)), documents.list({ limit: 9 }, 100)]).toEqual([
      ['a', 'b', 'c', 'd'],
      [],
    ])
    expect(documents.put({ kind: 'k', key: 'a', value: 1, ttlMs: 5 }, 1, 100)).toBeUndefined()
    expect(documents.put({ kind: 'k', key: 'a', value: 1, ttlMs: 5 }, 0, 100)).toBe(1)
    expect(documents.put({ kind: 'k', key: 'a', value: 2, ttlMs: 5 }, undefined, 101)).toBe(2)
    expect(documents.due(9, 103)).toEqual([])
  })

  test('are listed by key after another, and as they become due', () => {
    const documents = map()
    expect(keys(documents.list({ limit: 2, after: 'a' }, 0))).toEqual(['b', 'c'])
    expect([documents.list({ limit: 0 }, 0), documents.list({ limit: -1 }, 0)]).toEqual([[], []])
    documents.put({ kind: 'k', key: '', value: 0, ttlMs: 100 }, undefined, 0)
    expect(keys(documents.list({ limit: 1 }, 0))).toEqual([''])
    expect([9, 10, 20].map((now) => keys(documents.due(9, now)))).toEqual([[], ['a', 'd'], ['a', 'd', 'b']])
    expect([keys(documents.due(1, 20)), documents.due(0, 20), documents.due(-1, 20)]).toEqual([['a'], [], []])
    expect(documents.due(9, 100)).toEqual([])
  })

  test('are removed after they expired, so many at a time', () => {
    const documents = map()
    documents.put({ kind: 'k', key: 'new', value: 0, ttlMs: 100 }, undefined, 1)
    expect([99, 100, 100, 100].map((now) => documents.removeExpired(3, now))).toEqual([0, 3, 1, 0])
    expect([...documents.entries.keys()]).toEqual(['new'])
  })
})

test('a queue of due items has a size, and shares its order with others on request', () => {
  let order = 5
  const queue = new DueQueue<string>(() => order++)
  const entry = queue.set(undefined, 'a', 3)
  queue.set(undefined, 'b', 2)
  expect(queue.size).toBe(2)
  expect(queue.dueEntries(3, 2).map((each) => each.order)).toEqual([6, 5])
  expect(queue.set(entry, 'a', 1)).toBe(entry)
  expect([queue.due(0, 1)[0], queue.due(1, 1)[0], queue.countDue(1), queue.countDue(2)]).toEqual([undefined, 'a', 1, 2])
  queue.set(entry, 'a', null)
  expect([queue.size, queue.set(undefined, 'x', null)]).toEqual([1, undefined])
  expect(new DueQueue<string>().set(undefined, 'a', 0)?.order).toBe(0)
})

test('a long queue stays in order when its items move, leave and come', () => {
  const queue = new DueQueue<number>()
  const times = new Map<number, number>()
  const entries = new Map<number, ReturnType<typeof queue.set>>()
  // 0 to 996 in an irregular order.
  const timeOf = (n: number) => (n * 7919 + 13) % 997
  const put = (item: number, at: number | null) => {
    entries.set(item, queue.set(entries.get(item), item, at))
    if (at === null) times.delete(item)
    else times.set(item, at)
  }
  for (let item = 0; item < 300; item++) put(item, timeOf(item))
  for (let item = 0; item < 300; item += 3) put(item, timeOf(item + 500))
  for (let item = 1; item < 300; item += 5) put(item, null)
  while (times.size > 0) {
    const [first] = [...times].reduce((a, b) => (b[1] < a[1] ? b : a))
    expect(queue.due(Infinity, 1)[0]).toBe(first)
    put(first, null)
    // As for a job that is queued again.
    if (first % 7 === 0 && first < 300) put(first + 1000, timeOf(first + 700))
  }
  expect(queue.size).toBe(0)
})

test('of several applications what is due longest comes first, and of equals what came first', () => {
  const queues = new DueQueues<string>()
  queues.set('b', undefined, 'b1', 9)
  queues.set('a', undefined, 'a1', 5)
  queues.set('b', undefined, 'b2', 5)
  queues.set('a', undefined, 'a2', 3)
  const due = (page: object) => queues.due(9, { limit: 9, perApp: 9, exceptApps: [], ...page })
  expect(due({})).toEqual(['a2', 'a1', 'b2', 'b1'])
  expect([due({ limit: 2 }), due({ perApp: 1 }), due({ exceptApps: ['a'] }), due({ limit: 0 })]).toEqual([
    ['a2', 'a1'],
    ['a2', 'b2'],
    ['b2', 'b1'],
    [],
  ])
})

describe('a ledger in memory', () => {
  const dayMs = 86_400_000
  const ended = (status: 'QUEUED' | 'FAILED', settlement: LedgerEntry | null) => sampleJob({ status, settlement })
  const entry = (id: string, endedAt: number, app = 'a'): LedgerEntry => ({
    ...ledgerEntry(sampleJob({ app, completedAt: endedAt })),
    id,
  })

  test('gets an entry with the change that ends a job', () => {
    const settlement = entry('j/0', 5)
    expect(entryOf({ status: 'STARTED' }, ended('FAILED', settlement))).toBe(settlement)
    expect(entryOf({ status: 'STARTED' }, ended('FAILED', null))).toBeUndefined()
    expect(entryOf({ status: 'STARTED' }, ended('QUEUED', settlement))).toBeUndefined()
    expect(entryOf({ status: 'FAILED' }, ended('FAILED', settlement))).toBeUndefined()
  })

  test('lists the days from the first to the last by time and id, page by page, once each', async () => {
    const ledger = new LedgerEntries()
    const days = [entry('late', 3 * dayMs), entry('c', 2 * dayMs), entry('b', dayMs + 5), entry('a', dayMs + 5)]
    for (const each of [...days, entry('early', dayMs - 1), entry('other', dayMs, 'b')]) ledger.add(each)
    ledger.add(undefined)
    ledger.add(entry('c', 2 * dayMs))
    expect([ledger.has('c'), ledger.has('d')]).toEqual([true, false])
    const page = async (query: object = {}) => {
      const found = await ledger.entries({ fromDay: 1, toDay: 2, app: 'a', limit: 9, ...query })
      return found.map(({ id }) => id).join(' ')
    }
    expect(await page()).toBe('a b c')
    expect(await page({ app: undefined })).toBe('other a b c')
    expect([await page({ limit: 2 }), await page({ limit: 0 }), await page({ limit: -1 })]).toEqual(['a b', '', ''])
    expect(await page({ after: { endedAt: dayMs + 5, id: 'a' } })).toBe('b c')
    expect(await page({ after: { endedAt: dayMs + 5, id: 'b' } })).toBe('c')
    // Another id with an earlier end, and one with a later end.
    expect(await page({ after: { endedAt: dayMs + 4, id: 'z' } })).toBe('a b c')
    expect(await page({ after: { endedAt: dayMs + 6, id: '' } })).toBe('c')
    expect(await ledger.tidy({ keepFromDay: 2 })).toBe(4)
    expect(await page({ fromDay: 0, toDay: 9, app: undefined })).toBe('c late')
  })
})

test('a job is due from its time on, for its reason', () => {
  const lease = { owner: 'w', token: 1, nonce: '', until: 5 }
  const due = (kind: Parameters<typeof isDue>[0], job: Parameters<typeof sampleJob>[0]) =>
    [4, 5, 6].map((now) => isDue(kind, sampleJob(job), now))
  const from5 = [false, true, true]
  const never = [false, false, false]
  expect(due('lapsed', { status: 'STARTED', lease })).toEqual(from5)
  expect(due('expired', { status: 'SUCCEEDED', outputs: {}, expiresAt: 5 })).toEqual(from5)
  expect(due('overdue', { deadline: 5 })).toEqual(from5)
  expect(due('deleted', { deleted: true })).toEqual([true, true, true])
  expect(due('abandoned', { status: 'STARTED', lease, cancelRequested: true })).toEqual(from5)
  for (const kind of ['lapsed', 'abandoned', 'expired', 'overdue', 'deleted'] as const)
    expect(due(kind, {})).toEqual(never)
})

test('waiting and running jobs are grouped by workflow and pool, in order', () => {
  const waiting = [
    { workflow: 'b', pool: '', queued: 2, oldestMs: 7 },
    { workflow: 'a', pool: 'gpu', queued: 1, oldestMs: 3 },
  ]
  const running = [
    { workflow: 'c', pool: '', running: 1 },
    { workflow: 'a', pool: 'gpu', running: 2 },
    { workflow: 'a', pool: '', running: 4 },
  ]
  expect(mergedBacklog(waiting, running)).toEqual([
    { workflow: 'a', pool: '', queued: 0, oldestMs: 0, running: 4 },
    { workflow: 'a', pool: 'gpu', queued: 1, oldestMs: 3, running: 2 },
    { workflow: 'b', pool: '', queued: 2, oldestMs: 7, running: 0 },
    { workflow: 'c', pool: '', queued: 0, oldestMs: 0, running: 1 },
  ])
})

test('running jobs are counted by workflow and pool, and those that have just begun by the target of a rule', () => {
  const lanes = new RunningLanes()
  const job = { workflow: 'w', pool: '', status: 'STARTED' as const }
  for (const other of [
    job,
    job,
    { ...job, pool: 'gpu' },
    { ...job, workflow: 'v' },
    { ...job, status: 'QUEUED' as const },
  ])
    lanes.add(other)
  expect([lanes.ofWorkflow('w'), lanes.ofWorkflow('v'), lanes.ofWorkflow('x')]).toEqual([3, 1, 0])
  lanes.remove({ ...job, pool: 'gpu' })
  lanes.remove({ ...job, status: 'FAILED' })
  lanes.remove(job)
  expect(lanes.list()).toEqual([
    { workflow: 'w', pool: '', running: 1 },
    { workflow: 'v', pool: '', running: 1 },
  ])
  const begun = new Map([
    ['1', { app: 'a', workflow: 'w' }],
    ['2', { app: 'a', workflow: 'v' }],
    ['3', { app: 'w', workflow: 'v' }],
  ])
  expect(begunOf({ kind: 'deployment' }, begun)).toBe(3)
  expect(begunOf({ kind: 'application', id: 'a' }, begun)).toBe(2)
  expect(begunOf({ kind: 'workflow', id: 'w' }, begun)).toBe(1)
  expect(begunOf({ kind: 'deployment' }, undefined)).toBe(0)
})

test('only changes that are repeated may be lost in a power failure', () => {
  expect(repeatable).toEqual([
    'heartbeat',
    'requeue',
    'release',
    'hasten',
    'miss',
    'expire',
    'beginDelivery',
    'deferDelivery',
    'endDelivery',
  ])
})

test('a plain copy shares nothing with its original', () => {
  const original = { a: [1], b: undefined }
  const copy = plainCopy(original)
  expect(copy).toEqual({ a: [1] })
  expect(copy.a).not.toBe(original.a)
  expect(plainCopy(undefined)).toBeUndefined()
})

test('a copy of a plain value shares nothing with it, at any depth', () => {
  const original = plainCopy({ a: [1, { b: [2] }, null], c: { d: {} }, e: null, f: 'g', ['__proto__']: { h: 1 } })
  const copy = copyOfPlain(original)
  expect(copy).toEqual(original)
  expect(JSON.stringify(copy)).toBe(JSON.stringify(original))
  const parts = ({ a, c }: typeof original) => [a, a[1], c, c.d]
  for (const [index, part] of parts(copy).entries()) expect(part).not.toBe(parts(original)[index])
  expect(Object.getPrototypeOf(copy)).toBe(Object.prototype)
  expect(copyOfPlain(undefined)).toBeUndefined()
})

test('a rule is read from the row of a table, whose numbers may be texts', () => {
  const target = { kind: 'workflow', id: 'w' }
  expect(ruleOfRow('workflow', 'w', 'open', '3')).toEqual({ target, state: 'open', maxRunning: 3 })
  expect(ruleOfRow('workflow', 'w', 'paused', null)).toEqual({ target, state: 'paused', maxRunning: null })
  const ofAll = { target: { kind: 'deployment' }, state: 'open', maxRunning: 1 }
  expect(ruleOfRow('deployment', '', 'open', 1)).toEqual(ofAll)
  expect(() => ruleOfRow('planet', 'w', 'open', null)).toThrow('target')
})

describe('rows that this version cannot read', () => {
  afterEach(() => void vi.useRealTimers())
  const read = (rows: UnreadableRows, texts: string[]) => rows.readable(texts, (text) => `id of ${text}`, JSON.parse)

  test('are left out and recorded, and checked again after ten minutes', () => {
    vi.useFakeTimers()
    const rows = new UnreadableRows()
    vi.advanceTimersByTime(5000)
    expect(read(rows, ['1', 'x', '2'])).toEqual([1, 2])
    vi.advanceTimersByTime(599_000)
    expect(read(rows, ['y'])).toEqual([])
    vi.advanceTimersByTime(1000)
    expect(rows.ids).toEqual(['id of x', 'id of y'])
    vi.advanceTimersByTime(1)
    expect(rows.ids).toEqual([])
    read(rows, ['z'])
    vi.advanceTimersByTime(600_000)
    expect(rows.ids).toEqual(['id of z'])
  })

  test('are an error when there are more than 10,000', () => {
    const rows = new UnreadableRows()
    read(
      rows,
      Array.from({ length: 10_000 }, (_, n) => `x${n}`),
    )
    expect(rows.ids.length).toBe(10_000)
    expect(() => read(rows, ['one more'])).toThrow(expect.objectContaining({ code: 'STORE_UNAVAILABLE' }))
  })
})
