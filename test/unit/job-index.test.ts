import { describe, expect, test } from 'vitest'
import { ClaimOrder } from '../../src/adapters/stores/shared/claim-order.js'
import { indexedPart } from '../../src/adapters/stores/shared/indexed-job.js'
import { JobIndex } from '../../src/adapters/stores/shared/job-index.js'
import { sampleJob } from '../../src/contract/job-samples.js'
import type { JobRecord } from '../../src/core/engine/job/job.js'
import type { JobPage, JobQuery } from '../../src/core/engine/ports/job-store.js'

/** IDs of the jobs that a list shows. */
async function listed(index: JobIndex<JobRecord>, query: JobQuery = {}, after?: JobPage['after']): Promise<string[]> {
  const ids: string[] = []
  await index.each(query, after, ({ id }) => ids.push(id) > 0)
  return ids
}

const always = () => true
const never = () => false

describe('the order of claims', () => {
  const place = (fields: Partial<Parameters<ClaimOrder<string>['set']>[0]> = {}) => ({
    app: 'a',
    workflow: 'w',
    pool: '',
    priority: 0,
    ...fields,
  })
  const orderOf = (...items: [item: string, at: number, fields?: Parameters<typeof place>[0]][]) => {
    const order = new ClaimOrder<string>()
    const entries = items.map(([item, at, fields]) => order.set(place(fields), undefined, item, at))
    return { order, entries }
  }
  /** Takes one item after another, as they are claimed. */
  const taken = (order: ClaimOrder<string>, count: number, now = 100) => {
    const all = new Set<string>()
    for (let n = 0; n < count; n++) all.add(order.take(now, all, always, never) ?? '')
    return [...all].join('')
  }

  test('is by time, then by arrival, over all workflows and pools of a priority', () => {
    const { order } = orderOf(['c', 2, { workflow: 'v' }], ['a', 1], ['d', 2], ['b', 1, { pool: 'gpu' }], ['e', 101])
    expect(taken(order, 5)).toBe('abcd')
    expect(order.take(101, new Set(['a', 'b', 'c', 'd']), always, never)).toBe('e')
    // In order of time, although items due later arrived earlier.
    expect(taken(orderOf(['c', 9, { workflow: 'v' }], ['b', 2], ['a', 1, { workflow: 'v' }]).order, 3)).toBe('abc')
  })

  test('is by priority before time', () => {
    const { order } = orderOf(['c', 1, { priority: -1 }], ['b', 2], ['a', 3, { priority: 1 }])
    expect(taken(order, 3)).toBe('abc')
    const other = orderOf(['a', 3, { priority: 1 }], ['b', 2], ['c', 1, { priority: -1 }])
    expect(taken(other.order, 3)).toBe('abc')
  })

  test('gives applications turns, the one that has waited longest first', () => {
    const { order } = orderOf(['1', 1], ['2', 1], ['3', 1], ['x', 9, { app: 'b' }], ['y', 9, { app: 'b' }])
    expect(taken(order, 5)).toBe('1x2y3')
  })

  test('leaves out what is closed, what is not due and what was taken out', () => {
    const { order, entries } = orderOf(['1', 1], ['2', 1, { workflow: 'v' }], ['3', 1, { app: 'b' }])
    expect(order.take(0, new Set(), always, never)).toBeUndefined()
    expect(order.take(1, new Set(), ({ workflow }) => workflow === 'v', never)).toBe('2')
    expect(order.set(place(), entries[0], '1', null)).toBeUndefined()
    expect(taken(order, 2)).toBe('32')
    expect(order.set(place({ app: 'unknown' }), undefined, 'x', null)).toBeUndefined()
    expect(order.set(place({ priority: 2 }), undefined, 'x', null)).toBeUndefined()
    expect(order.take(1, new Set(['2', '3']), always, never)).toBeUndefined()
  })

  test('counts what is ahead of an item in its application, up to a number', () => {
    const { order, entries } = orderOf(
      ['1', 1],
      ['2', 5],
      ['me', 5],
      ['3', 5],
      ['4', 1, { priority: 1 }],
      ['5', 90, { priority: 1 }],
      ['6', 1, { priority: -1 }],
      ['7', 1, { app: 'b' }],
    )
    const me = entries[2]
    if (!me) return expect.unreachable()
    const ahead = (now: number, max: number) => order.ahead(place(), me, now, max)
    // Items 1, 2 and 4; item 5 once it is due.
    expect([ahead(10, 9), ahead(95, 9), ahead(95, 3), ahead(95, 1), ahead(95, 0)]).toEqual([3, 4, 3, 1, 0])
    order.take(10, new Set(), always, never)
    expect(ahead(10, 9)).toBe(3)
    expect(order.ahead(place({ app: 'unknown' }), me, 10, 9)).toBe(0)
  })

  test('is shown in the order of claims, up to a number', () => {
    const { order } = orderOf(
      ['c', 3, { workflow: 'v' }],
      ['a', 1],
      ['b', 2, { pool: 'gpu' }],
      ['urgent', 9, { priority: 1 }],
      ['x', 5, { app: 'b' }],
      ['y', 6, { app: 'b' }],
      ['late', 7, { priority: -1, workflow: 'v' }],
      ['later', 101],
    )
    const all = ['urgent', 'x', 'a', 'y', 'b', 'c', 'late']
    for (const max of [9, 3, 2, 1, 0]) expect(order.upcoming(100, max)).toEqual(all.slice(0, max))
    expect(taken(order, 7)).toBe(all.join(''))
  })

  test('lists the items of an application by time, however many of one workflow come first', () => {
    const { order } = orderOf(['a', 1], ['b', 2], ['c', 3], ['d', 4, { workflow: 'v' }])
    expect(order.upcoming(100, 2)).toEqual(['a', 'b'])
    expect(order.upcoming(100, 4)).toEqual(['a', 'b', 'c', 'd'])
  })

  test('counts what waits by workflow and pool, with the time of the first', () => {
    const { order } = orderOf(
      ['1', 3],
      ['2', 2, { app: 'b' }],
      ['3', 4, { priority: 1 }],
      ['4', 1, { pool: 'gpu' }],
      ['5', 99],
    )
    const lane = { workflow: 'w', pool: '', queued: 3, firstAt: 2 }
    expect(order.backlog(50, 9)).toEqual([lane, { ...lane, pool: 'gpu', queued: 1, firstAt: 1 }])
    expect(order.backlog(50, 2)[0]).toEqual({ ...lane, queued: 2 })
    expect(order.backlog(0, 9)).toEqual([])
    order.take(50, new Set(), always, never)
    expect(order.backlog(50, 9).map(({ queued }) => queued)).toEqual([3, 1])
  })
})

describe.each([
  ['whole jobs', (job: JobRecord) => job],
  ['the parts of jobs that it reads', (job: JobRecord) => indexedPart(job) as JobRecord],
])('the index of %s', (_, part) => {
  const lease = { owner: 'w', token: 1, nonce: '', until: 50 }
  let created = 0
  const indexOf = (...jobs: Partial<JobRecord>[]) => {
    const index = new JobIndex<JobRecord>()
    const all = jobs.map((fields) => part(sampleJob({ app: 'a', createdAt: ++created, ...fields })))
    for (const job of all) index.set(job)
    return { index, all }
  }
  const now = 1_000_000
  const free = { rules: [] }

  test('returns a job whose lease has expired before waiting ones, and none that was taken', () => {
    const { index, all } = indexOf({ id: '1' }, { id: '2', status: 'STARTED', lease }, { id: '3' })
    const taken: string[] = []
    for (let job = index.takeNext(now, free); job; job = index.takeNext(now, free, taken)) taken.push(job.id)
    expect(taken).toEqual(['2', '1', '3'])
    expect(index.takeNext(now, free, ['unknown', '2', '3'])?.id).toBe('1')
    expect(index.takeNext(now, { ...free, exceptApps: ['a'] })).toBeUndefined()
    expect(index.takeNext(now, { ...free, workflows: [all[0]!.workflow] })?.id).toBe('2')
    expect(index.takeNext(now, { ...free, workflows: ['other'] })).toBeUndefined()
  })

  test('holds back what a rule forbids, and counts jobs that have just begun as running', () => {
    const { index, all } = indexOf({ id: '1' }, { id: '2', status: 'STARTED', lease: { ...lease, until: now * 2 } })
    const rule = (maxRunning: number, target = { kind: 'application' as const, id: 'a' }) => ({
      rules: [{ target, state: 'open' as const, maxRunning }],
    })
    expect([1, 2].map((max) => index.takeNext(now, rule(max))?.id)).toEqual([undefined, '1'])
    const begun = new Map([['3', { app: 'a', workflow: 'w' }]])
    expect([2, 3].map((max) => index.takeNext(now, { ...rule(max), begun })?.id)).toEqual([undefined, '1'])
    const none = { kind: 'application' as const, id: 'none' }
    expect(index.mayBegin({ ...all[0]!, app: 'none' }, rule(1, none))).toBe(true)
    // The index has no job of this application yet.
    const first = new Map([['4', { app: 'none', workflow: 'w' }]])
    expect(index.mayBegin({ ...all[0]!, app: 'none' }, { ...rule(1, none), begun: first })).toBe(false)
  })

  test('counts jobs that have just begun for claims of applications with fewer running jobs', () => {
    const { index, all } = indexOf({ id: '1' }, { id: '2', status: 'STARTED', lease: { ...lease, until: now * 2 } })
    const [job] = all
    if (!job) return expect.unreachable()
    const begun = new Map([
      ['3', { app: 'a', workflow: 'w' }],
      ['4', { app: 'b', workflow: 'w' }],
    ])
    const may = (belowRunning: number, fields: Partial<JobRecord> = {}) =>
      index.mayBegin({ ...job, ...fields }, { ...free, begun, belowRunning })
    expect([2, 3].map((below) => may(below))).toEqual([false, true])
    expect([1, 2].map((below) => may(below, { app: 'b' }))).toEqual([false, true])
    // A job does not count against itself.
    expect([1, 2].map((below) => may(below, { status: 'STARTED' }))).toEqual([false, true])
  })

  test('keeps the turn of an application with a running job, and forgets one without', () => {
    const ends = (status: JobRecord['status']) => {
      const { index, all } = indexOf({ id: 'a1' }, { id: 'b1', app: 'b' }, { id: 'b2', app: 'b' })
      const [a1, b1] = all
      if (!a1 || !b1) return expect.unreachable()
      const took = [index.takeNext(now, free)?.id]
      index.set({ ...a1, status: 'STARTED', lease: { ...lease, until: now * 2 } })
      took.push(index.takeNext(now, free)?.id)
      index.set({ ...b1, status: 'STARTED', lease: { ...lease, until: now * 2 } })
      if (status !== 'STARTED') index.set({ ...a1, status, completedAt: 1 })
      // Both have had a turn, `b` the later one. This claim finds nothing of `a`.
      index.takeNext(now, { ...free, exceptApps: ['b'] })
      index.set(part(sampleJob({ id: 'a2', app: 'a', createdAt: ++created })))
      index.set(part(sampleJob({ id: 'c1', app: 'c', createdAt: ++created })))
      for (let n = 0; n < 3; n++) {
        const job = index.takeNext(now, free)
        if (job) index.set({ ...job, status: 'STARTED', lease: { ...lease, until: now * 2 } })
        took.push(job?.id)
      }
      return took.join(' ')
    }
    expect(ends('STARTED')).toBe('a1 b1 c1 a2 b2')
    expect(ends('SUCCEEDED')).toBe('a1 b1 a2 c1 b2')
  })

  test('hides a deleted job, and knows it until it is removed', async () => {
    const uploads = { inputUrl: 'uploads/a/1' }
    const idempotency = { key: 'k', digest: 'd' }
    const { index, all } = indexOf(
      { id: '1', uploads, idempotency, status: 'STARTED', lease },
      { id: '2', deleted: true },
    )
    const [job] = all
    if (!job) return expect.unreachable()
    const seen = async () => ({
      listed: await listed(index),
      ofUpload: (await listed(index, { uploadKey: 'uploads/a/1' })).length,
      byKey: index.withIdempotencyKey('a', 'k')?.id,
      counts: [await index.count({ app: 'a' }), await index.count({})],
      deleted: index.due('deleted', now, 9).map(({ id }) => id),
      backlog: index.backlog(now, 9).length,
    })
    expect(await seen()).toEqual({ listed: ['1'], ofUpload: 1, byKey: '1', counts: [1, 1], deleted: ['2'], backlog: 1 })
    for (let n = 0; n < 2; n++) {
      index.set({ ...job, deleted: true })
      expect(await seen()).toEqual({
        listed: [],
        ofUpload: 0,
        byKey: undefined,
        counts: [0, 0],
        deleted: ['2', '1'],
        backlog: 0,
      })
    }
    expect(index.get('1')).toMatchObject({ deleted: true })
    for (const id of ['1', '1', 'unknown', '2']) index.remove(id)
    expect([index.get('1'), index.get('2'), (await seen()).deleted]).toEqual([undefined, undefined, []])
    const { index: other } = indexOf({ id: '3', status: 'SUCCEEDED', completedAt: 1 })
    other.remove('3')
    expect([other.endedBefore(now, 9), await listed(other), await other.count({})]).toEqual([[], [], 0])
  })

  test('keeps an upload known while one of its jobs exists', async () => {
    const uploads = { inputUrl: 'uploads/a/1' }
    const { index } = indexOf({ id: '1', uploads }, { id: '2', uploads })
    const users = () => listed(index, { uploadKey: 'uploads/a/1' })
    expect(await users()).toEqual(['2', '1'])
    index.remove('1')
    expect(await users()).toEqual(['2'])
    expect([(await listed(index, { app: 'a' })).length, await index.count({ app: 'a' })]).toEqual([1, 1])
    index.remove('2')
    expect(await users()).toEqual([])
  })

  test('finds what is due, so many at a time', () => {
    const status = 'STARTED'
    const { index } = indexOf(
      { id: '1', status, lease },
      { id: '2', status, lease, app: 'b' },
      { id: '4', deleted: true },
    )
    const due = (kind: 'lapsed' | 'deleted', limit: number) => index.due(kind, now, limit).map(({ id }) => id)
    expect([9, 1, 0, -1].map((limit) => due('lapsed', limit))).toEqual([['1', '2'], ['1'], [], []])
    expect([9, 1, 0, -1].map((limit) => due('deleted', limit))).toEqual([['4'], ['4'], [], []])
  })

  test('finds jobs that missed their deadline, are abandoned, have expired or have ended', () => {
    const kept = { status: 'SUCCEEDED', outputs: {}, completedAt: 1, expiresAt: 5 } as const
    const { index } = indexOf(
      { id: 'overdue', deadline: 5 },
      { id: 'canceled', status: 'STARTED', lease, cancelRequested: true },
      { id: 'lapsed', status: 'STARTED', lease },
      { id: 'late', status: 'STARTED', lease, deadline: 5 },
      { id: 'kept', ...kept },
      { id: 'gone', ...kept, expired: true, completedAt: 2 },
      { id: 'without-files', ...kept, outputs: null, completedAt: 3 },
    )
    const due = (reason: 'overdue' | 'abandoned' | 'expired') => index.due(reason, now, 9).map(({ id }) => id)
    expect(due('overdue')).toEqual(['overdue'])
    expect(due('abandoned')).toEqual(['canceled', 'late'])
    expect(due('expired')).toEqual(['kept'])
    expect(index.endedBefore(3, 9).map(({ id }) => id)).toEqual(['kept', 'gone'])
  })

  test('returns the most urgent due job first, to a worker of its pool', () => {
    const { index } = indexOf(
      { id: '1', pool: 'gpu' },
      { id: '2', priority: 1 },
      { id: '3' },
      { id: '4', priority: 2, notBefore: 2 * now },
      { id: '5', priority: 2, dueAt: 2 * now },
    )
    const order = (labels: string[] | undefined, at = now) => {
      const ids: string[] = []
      for (let job = index.takeNext(at, { ...free, labels }); job; job = index.takeNext(at, { ...free, labels }, ids))
        ids.push(job.id)
      return ids.join('')
    }
    expect([order([]), order(['gpu']), order([], 2 * now)]).toEqual(['23', '213', '4523'])
  })

  test('counts the bytes of records by application', () => {
    const { index } = indexOf({ id: '1', metadata: { text: 'a'.repeat(1000) } }, { id: '2' }, { id: '3', app: 'b' })
    expect(index.recordBytes('a')).toBe(2 * index.recordBytes('b') + 1000 + '"text":""'.length)
    index.remove('1')
    expect([index.recordBytes('a'), index.recordBytes('none')]).toEqual([index.recordBytes('b'), 0])
  })

  test('finds due messages by application, in the order of their times', () => {
    const message = (nextAttemptAt: number): JobRecord['deliveries'] => [
      {
        id: 'm',
        url: 'u',
        event: 'e',
        occurredAt: 0,
        attempts: 0,
        lastStatus: null,
        outcome: 'pending',
        nextAttemptAt,
      },
    ]
    const { index, all } = indexOf(
      { id: '1', deliveries: message(3) },
      { id: '2', deliveries: message(1) },
      { id: '3', app: 'b', deliveries: message(2) },
      { id: '4', app: 'c', deliveries: message(2) },
      { id: '5', app: 'd', deliveries: message(now + 1) },
      { id: '6', app: 'd' },
    )
    const due = (page: Partial<Parameters<typeof index.deliverable>[1]> = {}) =>
      index.deliverable(now, { limit: 9, perApp: 9, exceptApps: [], ...page }).map(({ id }) => id)
    expect(due()).toEqual(['2', '3', '4', '1'])
    expect([2, 1, 0, -1].map((limit) => due({ limit }))).toEqual([['2', '3'], ['2'], [], []])
    expect([1, 0, -1].map((perApp) => due({ perApp }))).toEqual([['2', '3', '4'], [], []])
    expect(due({ exceptApps: ['a', 'c'] })).toEqual(['3'])
    for (const job of all) index.set({ ...job, deliveries: [] })
    expect(due()).toEqual([])
    for (const job of all.slice(0, 1)) index.set(job)
    expect(due()).toEqual(['1'])
  })

  test('counts by status and by the filters of a query, up to a number', async () => {
    const { index } = indexOf({}, { batchName: 'b' }, { status: 'FAILED', batchName: 'b' }, { app: 'other' })
    const counted = (...queries: JobQuery[]) => Promise.all(queries.map((query) => index.count(query)))
    expect(await counted({}, { app: 'a' }, { app: 'none' })).toEqual([4, 3, 0])
    expect(await counted({ app: 'a', statuses: ['QUEUED', 'QUEUED'] })).toEqual([2])
    expect([index.queued('a'), index.queued('none')]).toEqual([2, 0])
    expect([await index.count({}, 2), await index.count({}, 0)]).toEqual([2, 0])
    const ofBatch = (max?: number) => index.count({ app: 'a', batchName: 'b' }, max)
    expect(await Promise.all([undefined, 2, 1, 0, -1].map(ofBatch))).toEqual([2, 2, 1, 0, 0])
    const batch = { batchName: 'b' }
    expect(await counted({ ...batch, workflows: undefined }, { ...batch, statuses: ['FAILED'] })).toEqual([2, 1])
  })

  test('lists the newest first, and jobs of the same time by their ids', async () => {
    const createdAt = 5
    const { index } = indexOf(
      { id: 'b', createdAt },
      { id: 'c', createdAt },
      { id: 'a', createdAt },
      { id: 'd', createdAt: 4 },
    )
    const ids = async (query: JobQuery, after?: JobPage['after']) => (await listed(index, query, after)).join('')
    expect(await ids({})).toBe('cbad')
    expect(await ids({}, { createdAt, id: 'b' })).toBe('ad')
    expect([await ids({ createdBefore: 5 }), await ids({ createdAfter: 5 })]).toEqual(['d', 'cba'])
  })

  test('searches many jobs in slices, between which other work runs and changes them', async () => {
    const id = (n: number) => String(n).padStart(4, '0')
    const many = Array.from({ length: 3000 }, (_, n) => ({ id: id(n), createdAt: n, name: 'a song' }))
    const { index, all } = indexOf(...many)
    let passes = 0
    setImmediate(function work() {
      // Before the next piece, all of the list's old end is deleted, and a new job is added.
      if (passes++ === 0) for (const job of all.slice(0, 100)) index.set({ ...job, deleted: true })
      index.set({ ...all[0]!, id: `new-${passes}`, createdAt: 5000 })
      if (passes < 100) setImmediate(work)
    })
    const found = await listed(index, { search: 'song' })
    expect(found).toEqual(
      many
        .slice(100)
        .toReversed()
        .map((job) => job.id),
    )
    expect(passes).toBeGreaterThanOrEqual(5)
    passes = 0
    const stopped: string[] = []
    await index.each({}, undefined, (job) => stopped.push(job.id) < 3)
    expect([stopped.length, passes]).toEqual([3, 0])
  })

  test('knows the age of waiting jobs, and the place of a due job', () => {
    const { index } = indexOf({ id: '1', createdAt: 10, notBefore: 20 }, { id: '2', createdAt: 11, notBefore: 30 })
    expect(index.backlog(50, 9)).toMatchObject([{ queued: 2, oldestMs: 30, running: 0 }])
    expect([29, 30].map((at) => index.ahead('2', at, 9))).toEqual([undefined, 1])
    expect(index.ahead('unknown', 30, 9)).toBeUndefined()
  })

  test('finds by an idempotency key the job that was created last', () => {
    const idempotency = { key: 'k', digest: 'd' }
    const { index, all } = indexOf({ id: '2', createdAt: 2, idempotency }, { id: '1', createdAt: 1, idempotency })
    expect(index.withIdempotencyKey('a', 'k')?.id).toBe('2')
    index.set({ ...all[1]!, deleted: true })
    expect(index.withIdempotencyKey('a', 'k')?.id).toBe('2')
    expect(index.withIdempotencyKey('b', 'k')).toBeUndefined()
  })
})
