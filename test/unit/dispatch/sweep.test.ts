import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { fileSweep } from '../../../src/core/engine/dispatch/sweep/file-sweep.js'
import { finishDeletion, jobSweep, type SweepPorts } from '../../../src/core/engine/dispatch/sweep/sweep.js'
import type { JobRecord } from '../../../src/core/engine/job/job.js'
import { StoreClock } from '../../../src/core/engine/store-clock.js'
import { resolveEngineOptions } from '../../../src/core/engine/options.js'
import { recordingLogger } from '../../engine/harness.js'

const hour = 3_600_000
/** The time of both stores. */
const now = 1_700_000_000_000
const retention = {
  resultsMs: hour,
  jobsMs: 7 * hour,
  failedInputsMs: 2 * hour,
  orphansMs: hour,
  unusedUploadsMs: hour,
}
const options = resolveEngineOptions({ retention })

let calls: unknown[][]
let lines: ReturnType<typeof recordingLogger>['lines']

// The store's time advances only by the time that passes here: none, however busy the machine is.
beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
afterEach(() => void vi.useRealTimers())
beforeEach(() => void (calls = []))

/** Ports that record their calls and answer with `answers`, which may throw. */
function portsWith(answers: Record<string, (...args: never[]) => unknown>): SweepPorts {
  const ask =
    (name: string) =>
    (...args: unknown[]) => {
      calls.push([name, ...args])
      return answers[name]?.(...(args as never[])) ?? (name === 'list' ? [] : undefined)
    }
  const asked = (names: string[]) =>
    Object.fromEntries(names.map((name) => [name, async (...args: unknown[]) => ask(name)(...args)]))
  const recorded = recordingLogger()
  lines = recorded.lines
  return {
    jobs: {
      ...asked(['due', 'apply', 'purge', 'get', 'count', 'list', 'beginFilePass']),
      documents: { list: async () => [], ...asked(['removeExpired']) },
    },
    clock: new StoreClock({ traits: { scope: 'process' }, time: async () => now }),
    contact: { lapsedBefore: async () => now - hour },
    blobs: {
      ...asked(['deletePrefix', 'delete', 'put', ...('cleanUp' in answers ? ['cleanUp'] : [])]),
      get: async () => undefined,
      stat: async () => ({ modifiedAt: now }),
      async *list(prefix: string) {
        yield* (answers.files?.(prefix as never) ?? []) as unknown[]
      },
    },
    events: { announce: ask('announce') },
    onEnd: ask('onEnd'),
    options,
    logger: recorded.logger,
  } as unknown as SweepPorts
}

const jobOf = (id: string, fields: object = {}) =>
  ({
    id,
    app: 'app',
    uploads: {},
    startedAt: null,
    lease: null,
    status: 'QUEUED',
    webhook: null,
    ...fields,
  }) as unknown as JobRecord
const named = (name: string) => calls.filter(([each]) => each === name).map(([, ...args]) => args)

describe('a sweep', () => {
  test('tidies the ledger in its first and then in every twentieth round', async () => {
    const tidied: unknown[] = []
    const ports = portsWith({ due: () => [], purge: () => [] })
    const ledger = { tidy: async (range: unknown) => void tidied.push(range) }
    Object.assign(ports.jobs, { ledger })
    const sweep = jobSweep(ports)
    const keepFromDay = Math.floor((now - options.retention.usageMs) / (24 * hour))
    await sweep.run()
    expect(tidied).toEqual([{ keepFromDay }])
    for (let round = 2; round <= 20; round++) await sweep.run()
    expect(tidied).toHaveLength(1)
    await sweep.run()
    expect(tidied).toHaveLength(2)
  })

  test('checks its contact to the store if a lease has ended, and leaves jobs that may be held', async () => {
    const ports = portsWith({ due: (kind: string) => (kind === 'overdue' ? [jobOf('late')] : []), purge: () => [] })
    let asked = 0
    Object.assign(ports.contact, { lapsedBefore: async () => ++asked })
    await jobSweep(ports).run()
    expect(asked).toBe(0)
    calls = []
    const away = jobOf('away', { cancelRequested: true, lease: { until: now - hour + 1 } })
    await jobSweep(portsWith({ due: (kind: string) => (kind === 'abandoned' ? [away] : []), purge: () => [] })).run()
    expect(named('apply')).toEqual([])
  })

  test('ends deletions and expired results, the jobs that missed their deadlines, and purges old ones', async () => {
    const missed = jobOf('late', {
      deadline: 1000,
      webhook: { url: 'https://example.com', events: null },
    })
    const ended = jobOf('late', { status: 'FAILED' })
    const ports = portsWith({
      due: (kind: string) =>
        ({
          deleted: [jobOf('a')],
          expired: [jobOf('b'), jobOf('c')],
          overdue: [missed, jobOf('begun')],
          abandoned: [
            jobOf('left', { cancelRequested: true, lease: { until: now - hour } }),
            // Its worker may return soon.
            jobOf('away', { cancelRequested: true, lease: { until: now - hour + 1 } }),
          ],
          lapsed: [],
        })[kind],
      apply: (id: string, { kind }: { kind: string }) =>
        (kind === 'miss' && id === 'late') || (kind === 'cancel' && id === 'left') ? ended : undefined,
      purge: ({ id }: { id?: string }) => (id === undefined ? ['x', 'y', 'z'] : [id]),
    })
    expect(await jobSweep(ports).run()).toEqual({ deleted: 1, expired: 2, missed: 2, purged: 3 })
    expect(named('due')).toEqual([
      ['deleted', 100],
      ['expired', 100],
      ['overdue', 100],
      ['abandoned', 100],
      ['lapsed', 100],
    ])
    expect(named('deletePrefix')).toEqual(['a', 'b', 'c'].map((id) => [`results/${id}/`, { app: 'app' }]))
    expect(named('apply')).toEqual([
      ['b', { kind: 'expire' }],
      ['c', { kind: 'expire' }],
      [
        'late',
        {
          kind: 'miss',
          error: expect.objectContaining({
            reason: 'deadline',
            message: expect.stringContaining('1970-01-01T00:00:01'),
          }),
          retentionMs: 2 * hour,
          messages: [expect.objectContaining({ event: 'job.failed' })],
        },
      ],
      ['begun', expect.objectContaining({ kind: 'miss' })],
      ['left', expect.objectContaining({ kind: 'cancel', error: expect.objectContaining({ code: 'CANCELED' }) })],
    ])
    expect(named('onEnd')).toEqual([[ended], [ended]])
    expect(named('announce')).toEqual([
      ['job.failed', { job: ended }],
      ['job.failed', { job: ended }],
    ])
    expect(named('purge')).toEqual([[{ id: 'a' }], [{ endedBefore: now - 7 * hour, limit: 100 }]])
    expect(lines).toEqual([])
  })

  test('queues the jobs of lost workers again once those have given up, too', async () => {
    const { storageOutageMs } = options.dispatch
    const released = jobOf('lost', { status: 'QUEUED' })
    const ports = portsWith({
      due: (kind: string) =>
        kind === 'lapsed'
          ? [
              jobOf('lost', { lease: { until: now - storageOutageMs } }),
              jobOf('away', { lease: { until: now - storageOutageMs + 1 } }),
            ]
          : [],
      apply: () => released,
      purge: () => [],
    })
    // No job is lost while the contact reports none as lost.
    Object.assign(ports.contact, { lapsedBefore: async () => 0 })
    await jobSweep(ports).run()
    expect(named('apply')).toEqual([])
    Object.assign(ports.contact, { lapsedBefore: async () => now })
    await jobSweep(ports).run()
    expect(named('apply')).toEqual([['lost', { kind: 'release', lapsedBefore: now - storageOutageMs }]])
    expect(named('announce')).toEqual([['job.requeued', { job: released }]])
  })

  test('ends an overdue job whose worker lives, and one of a lost worker that has no lease', async () => {
    const lease = { until: now + hour }
    const ports = portsWith({
      due: (kind: string) =>
        ({
          overdue: [jobOf('late', { deadline: now - 1, lease })],
          abandoned: [jobOf('left', { cancelRequested: true, lease: null })],
        })[kind] ?? [],
      apply: (id: string) => jobOf(id, { status: 'FAILED' }),
      purge: () => [],
    })
    expect(await jobSweep(ports).run()).toMatchObject({ missed: 2 })
    expect(named('apply').map(([id]) => id)).toEqual(['late', 'left'])
  })

  test.each([
    [5000, ['new']],
    [1000, ['new']],
    [999, []],
  ])('makes jobs that wait due sooner if the clock was %i ms ahead', async (byMs, hastened) => {
    const created = { createdAt: now + byMs, dueAt: null }
    const asked: object[] = []
    const ports = portsWith({
      due: () => [],
      list: (query: object) => {
        asked.push(query)
        return [jobOf('new', created), jobOf('delayed', { ...created, dueAt: now + hour })]
      },
      purge: () => [],
    })
    await jobSweep(ports).run()
    expect(named('apply')).toEqual(hastened.map((id) => [id, { kind: 'hasten', byMs }]))
    expect(asked[0]).toEqual({ limit: 1 })
    expect(asked.slice(1)).toEqual(
      hastened.map(() => expect.objectContaining({ statuses: ['QUEUED'], createdAfter: now })),
    )
  })

  test('removes all expired documents, a hundred at a time', async () => {
    let left = 250
    const ports = portsWith({
      removeExpired: (limit: number) => {
        const removed = Math.min(limit, left)
        left -= removed
        return removed
      },
    })
    await jobSweep(ports).run()
    expect([left, named('removeExpired').length]).toEqual([0, 3])
  })

  test('continues after a step that failed', async () => {
    const fail = () => {
      throw new Error('no store')
    }
    const ports = portsWith({ due: fail, list: fail, purge: () => ['x'] })
    Object.assign(ports.jobs.documents, { removeExpired: async () => fail() })
    expect(await jobSweep(ports).run()).toEqual({ deleted: 0, expired: 0, missed: 0, purged: 1 })
    expect(lines).toEqual(
      ['deleted', 'expired', 'overdue', 'abandoned', 'lapsed', 'ahead', 'documents'].map((step) => ({
        level: 'warn',
        fields: { step, err: new Error('no store') },
      })),
    )
  })

  test('ends the other overdue jobs if it cannot end one, and tries that one last', async () => {
    const ports = portsWith({
      due: (kind: string) => (kind === 'overdue' ? ['a', 'b', 'c'].map((id) => jobOf(id, { deadline: now - 1 })) : []),
      apply: (id: string) => {
        if (id === 'a') throw new Error('not this one')
        return jobOf(id)
      },
      purge: () => [],
    })
    const sweep = jobSweep(ports)
    expect(await sweep.run()).toMatchObject({ missed: 2 })
    expect(lines.map(({ fields }) => fields)).toEqual([{ step: 'overdue', jobId: 'a', err: new Error('not this one') }])
    calls = []
    await sweep.run()
    expect(named('apply').map(([id]) => id)).toEqual(['b', 'c', 'a'])
  })

  test('gives up a step once its failures have taken 30 s, and begins with the others next time', async () => {
    const ids = ['a', 'b', 'c', 'd', 'e', 'f']
    let isAway = true
    const ports = portsWith({
      due: (kind: string) => (kind === 'overdue' ? ids.map((id) => jobOf(id, { deadline: now - 1 })) : []),
      apply: (id: string) => {
        if (isAway) {
          vi.advanceTimersByTime(15_000)
          throw new Error('no store')
        }
        return jobOf(id)
      },
      purge: () => [],
    })
    const sweep = jobSweep(ports)
    const tried = () => named('apply').map(([id]) => id)
    expect(await sweep.run()).toMatchObject({ missed: 0 })
    expect(tried()).toEqual(['a', 'b'])
    calls = []
    await sweep.run()
    expect(tried()).toEqual(['c', 'd'])
    calls = []
    isAway = false
    expect(await sweep.run()).toMatchObject({ missed: 6 })
    expect(tried()).toEqual(['e', 'f', 'a', 'b', 'c', 'd'])
  })

  test('fetches as many more as failed before, and tries those last', async () => {
    const broken = new Set(['results/a/', 'results/b/'])
    let due = ['a', 'b', 'c']
    const ports = portsWith({
      due: (kind: string) => (kind === 'expired' ? due.map((id) => jobOf(id)) : []),
      deletePrefix: (prefix: string) => {
        if (broken.has(prefix)) throw new Error('denied')
      },
      purge: () => [],
    })
    const sweep = jobSweep(ports)
    expect(await sweep.run()).toMatchObject({ expired: 1 })
    expect(lines.map(({ fields }) => fields)).toEqual(
      ['a', 'b'].map((jobId) => ({ step: 'expired', jobId, err: new Error('denied') })),
    )
    calls = []
    broken.delete('results/b/')
    expect(await sweep.run()).toMatchObject({ expired: 2 })
    expect(named('due').slice(0, 2)).toEqual([
      ['deleted', 100],
      ['expired', 102],
    ])
    expect(named('deletePrefix')).toEqual(['c', 'a', 'b'].map((id) => [`results/${id}/`, { app: 'app' }]))
    calls = []
    await sweep.run()
    expect(named('due')[1]).toEqual(['expired', 101])
    // A job that is no longer due is no longer counted.
    due = []
    await sweep.run()
    calls = []
    await sweep.run()
    expect(named('due')[1]).toEqual(['expired', 100])
  })
})

test('a deletion revokes the links to the job, and no others', async () => {
  const ports = portsWith({ count: () => 0, purge: () => ['a'] })
  const revoked: string[] = []
  Object.assign(ports.jobs.documents, {
    list: async () => [{ key: 'a/1' }, { key: 'b/1' }],
    delete: async (kind: string, key: string) => void revoked.push(`${kind} ${key}`),
  })
  await finishDeletion(jobOf('a'), ports)
  expect(revoked).toEqual(['job-link a/1'])
})

test.each([
  [{ startedAt: 1, status: 'FAILED' }, ['results/a/', 'checkpoints/a/']],
  [{ startedAt: 1, status: 'SUCCEEDED' }, ['results/a/']],
  [{ startedAt: null, status: 'FAILED' }, ['results/a/']],
])('a deletion removes the files of %j, its uploads and then the record', async (fields, prefixes) => {
  const ports = portsWith({ count: () => 0, list: () => [], purge: () => ['a'] })
  await finishDeletion(jobOf('a', { ...fields, uploads: { song: 'uploads/a/1' } }), ports)
  expect(named('deletePrefix')).toEqual(prefixes.map((prefix) => [prefix, { app: 'app' }]))
  expect(named('delete')).toEqual([['uploads/a/1']])
  expect(calls.at(-1)).toEqual(['purge', { id: 'a' }])
})

describe('a sweep of files', () => {
  const old = now - 2 * hour
  const young = now - hour / 2
  const pass = { deployment: 'a', pass: 1 }
  type Files = Record<string, number>

  function sweepOf(files: Files, jobs: Record<string, object> = {}, more: Parameters<typeof portsWith>[0] = {}) {
    const ports = portsWith({
      beginFilePass: () => pass,
      files: (prefix: string) =>
        Object.entries(files)
          .filter(([key]) => key.startsWith(prefix))
          .map(([key, modifiedAt]) => ({ key, modifiedAt })),
      get: (id: string) => (id in jobs ? jobOf(id, jobs[id]) : undefined),
      count: () => 0,
      list: () => [],
      ...more,
    })
    return fileSweep(ports)
  }
  const removed = () => named('delete').map(([key]) => key)
  const results = (count: number, job: (n: number) => string, modifiedAt = old): Files =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`results/${job(n)}/1-n/text`, modifiedAt]))

  test('is made when one is due', async () => {
    const sweep = sweepOf({ 'uploads/a/1': old }, {}, { beginFilePass: () => undefined })
    expect(await sweep.run({ everyMs: 77 })).toEqual({ uploads: 0, orphans: 0 })
    expect(named('beginFilePass')).toEqual([[77]])
    expect(removed()).toEqual([])
    await sweep.run()
    expect(named('beginFilePass')[1]).toEqual([0])
  })

  test('removes uploads that nothing uses after their time', async () => {
    const files = { 'uploads/a/1': old, 'uploads/a/2': young, 'uploads/a/3': old }
    const sweep = sweepOf(
      files,
      {},
      { count: ({ uploadKey }: { uploadKey: string }) => Number(uploadKey.endsWith('3')) },
    )
    expect(await sweep.run()).toEqual({ uploads: 1, orphans: 0 })
    expect(removed()).toEqual(['uploads/a/1'])
    expect(sweep.problem).toBeUndefined()
  })

  test('removes checkpoints of jobs that are gone, or have ended and were not retried', async () => {
    const files = {
      'checkpoints/done/1-n/part-0': old,
      'checkpoints/done/1-n/part-1': old,
      'checkpoints/gone/1-n/part-0': old,
      'checkpoints/gone/1-n/part-1': young,
      'checkpoints/kept/1-n/part-0': old,
      'checkpoints/runs/1-n/part-0': old,
      'checkpoints/strange': old,
    }
    const failed = { status: 'FAILED', error: { code: 'INTERNAL_ERROR', reason: null } }
    const jobs = {
      done: { status: 'SUCCEEDED' },
      kept: { ...failed, expiresAt: now + hour },
      runs: { status: 'STARTED' },
    }
    expect(await sweepOf(files, jobs).run()).toEqual({ uploads: 0, orphans: 3 })
    expect(removed()).toEqual([
      'checkpoints/done/1-n/part-0',
      'checkpoints/done/1-n/part-1',
      'checkpoints/gone/1-n/part-0',
    ])
    expect(named('get')).toEqual([['done'], ['gone'], ['kept'], ['runs']])
  })

  test('removes results that no job names, in the order of their keys, with one look at each job', async () => {
    const files = {
      'results/done/1-n/text': old,
      'results/done/1-n/text.peaks': old,
      'results/done/2-n/other': old,
      'results/gone/1-n/text': old,
      'results/gone/1-n/young': young,
      'results/runs/1-a/text': old,
      'results/runs/2-b/text': old,
      'results/runs/2-c/text': old,
      'results/runs/3-d/text': old,
      'results/strange': old,
      'results/waits/1-a/text': old,
      'results/waits/2-b/text': old,
    }
    const jobs = {
      done: { status: 'SUCCEEDED', token: 2, outputs: { text: { key: 'results/done/1-n/text' } } },
      runs: { status: 'STARTED', token: 2, lease: { nonce: 'b' } },
      waits: { status: 'QUEUED', token: 2, lease: null },
    }
    const sweep = sweepOf(files, jobs, { cleanUp: () => 10 })
    const { orphans } = await sweep.run()
    expect(removed()).toEqual([
      'results/done/2-n/other',
      'results/gone/1-n/text',
      'results/runs/1-a/text',
      'results/runs/2-c/text',
      'results/runs/3-d/text',
      'results/waits/1-a/text',
    ])
    expect(orphans).toBe(16)
    expect(named('get')).toEqual([['done'], ['gone'], ['runs'], ['waits']])
    expect(named('cleanUp')).toEqual([[now - hour]])
  })

  test('keeps each result of a job with several, and removes those of a job that ended without any', async () => {
    const outputs = { text: { key: 'results/done/1-n/text' }, song: { key: 'results/done/1-n/song' } }
    const jobs = {
      done: { status: 'SUCCEEDED', token: 1, outputs },
      failed: { status: 'FAILED', token: 1, outputs: null },
    }
    const files = {
      'results/done/1-n/song': old,
      'results/done/1-n/text': old,
      'results/done/1-n/text.peaks': old,
      'results/failed/1-n/text': old,
    }
    expect(await sweepOf(files, jobs).run()).toEqual({ uploads: 0, orphans: 1 })
    expect([removed(), lines]).toEqual([['results/failed/1-n/text'], []])
  })

  test.each([
    [19, 19, 0],
    [20, 20, 20],
    [20, 11, 11],
    [20, 10, 0],
    [21, 11, 11],
  ])('of %i files with %i orphans, it keeps %i', async (count, orphans, kept) => {
    const found = results(orphans, (n) => `a${n}`)
    const sweep = sweepOf({ ...found, ...results(count - orphans, (n) => `young${n}`, young) })
    const report = await sweep.run()
    expect(report).toEqual({ uploads: 0, orphans: orphans - kept })
    expect(sweep.problem === undefined).toBe(kept === 0)
    if (kept === 0) return
    expect(lines).toEqual([{ level: 'error', fields: { files: count, orphans } }])
    expect(await sweep.run({ allowMassRemoval: true })).toEqual({ uploads: 0, orphans })
    expect(sweep.problem).toBeUndefined()
  })

  test('removes nothing of another deployment', async () => {
    const sweep = sweepOf({ 'uploads/a/1': old })
    const ports = portsWith({ beginFilePass: () => pass })
    ports.blobs.get = async () => ({
      stat: {} as never,
      body: (async function* () {
        yield Buffer.from(JSON.stringify({ deployment: 'b', pass: 1 }))
      })(),
    })
    const other = fileSweep(ports)
    expect(await other.run()).toEqual({ uploads: 0, orphans: 0 })
    expect(other.problem).toContain('another job store')
    expect(sweep.problem).toBeUndefined()
  })

  test('continues after a file that cannot be removed, and ends with an error of the store', async () => {
    const denied = (key: string) => {
      if (key === 'uploads/a/1') throw new Error('denied')
    }
    const files = { 'uploads/a/1': old, 'uploads/a/2': old }
    expect(await sweepOf(files, {}, { delete: denied }).run()).toEqual({ uploads: 1, orphans: 0 })
    expect(lines).toEqual([{ level: 'warn', fields: { key: 'uploads/a/1', err: new Error('denied') } }])
    const sweep = sweepOf(
      { 'uploads/a/2': old, ...results(1, () => 'gone') },
      {},
      {
        get: () => {
          throw new Error('no store')
        },
      },
    )
    expect(await sweep.run()).toEqual({ uploads: 0, orphans: 0 })
    expect(lines).toEqual([{ level: 'warn', fields: { err: new Error('no store') } }])
  })

  test.each(['uploads/a/1', 'results/a0/1-n/text', 'checkpoints/a/1-n/part-0'])(
    'stops after the file %s, if it is told to then',
    async (last) => {
      const files = {
        'uploads/a/1': old,
        'uploads/a/2': old,
        ...results(2, (n) => `a${n}`),
        'checkpoints/a/1-n/part-0': old,
        'checkpoints/a/1-n/part-1': old,
      }
      const sweep = sweepOf(
        files,
        {},
        {
          delete: (key: string) => {
            if (key === last) sweep.stop()
          },
        },
      )
      const report = await sweep.run()
      expect(removed().at(-1)).toBe(last)
      expect(report.uploads + report.orphans).toBe(removed().length)
    },
  )

  test('once it was stopped, it reads nothing', async () => {
    const sweep = sweepOf(
      { 'uploads/a/1': old, ...results(2, (n) => `a${n}`), 'checkpoints/a/1-n/part-0': old },
      {},
      { cleanUp: () => 1 },
    )
    sweep.stop()
    expect(await sweep.run()).toEqual({ uploads: 0, orphans: 0 })
    expect(calls.map(([name]) => name)).toEqual(['beginFilePass', 'put'])
  })
})
