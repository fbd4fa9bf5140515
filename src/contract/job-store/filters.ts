import assert from 'node:assert/strict'
import type { JobRecord } from '../../core/engine/job/job.js'
import type { JobQuery, JobStore } from '../../core/engine/ports/job-store.js'
import type { JobStoreContext } from '../job-store-context.js'
import { cancel, claim, claimed, ids, newestFirst, sampleJob, succeed } from '../job-samples.js'
import type { Cases } from '../suite.js'

export const filterCases = {
  async 'every filter and every combination of filters selects exactly the jobs that match'({ store, advance }) {
    const jobs = await variedJobs(store, advance)
    const times = jobs.map((job) => job.createdAt).sort((a, b) => a - b)
    const ends = jobs.flatMap((job) => job.completedAt ?? []).sort((a, b) => a - b)
    const options: { [Field in keyof JobQuery]-?: JobQuery[Field][] } = {
      app: [undefined, 'app-1', 'app-2', 'nobody'],
      statuses: [undefined, ['QUEUED'], ['STARTED', 'SUCCEEDED'], ['FAILED', 'FAILED'], []],
      workflows: [undefined, ['service/a'], ['service/a', 'service/b'], []],
      batchName: [undefined, 'batch', ''],
      createdAfter: [undefined, times[10]],
      // Hosts also give fractions of milliseconds.
      createdBefore: [undefined, (times[25] ?? 0) - 0.5],
      completedAfter: [undefined, (ends[2] ?? 0) - 0.5],
      completedBefore: [undefined, ends[8]],
      uploadKey: [undefined, 'uploads/app-1/shared', 'uploads/app-1/none'],
      search: [undefined, 'SONG batch', '', 'song none'],
    }
    for (const query of combinations(options)) {
      const expected = ids(jobs.filter((job) => matches(job, query)).sort(newestFirst))
      assert.deepEqual(
        ids(await store.list({ ...query, limit: 100 })),
        expected,
        `A list with the filters ${JSON.stringify(query)} shows exactly the jobs that match all of them, newest first.`,
      )
      assert.equal(
        await store.count(query),
        expected.length,
        `A count with the filters ${JSON.stringify(query)} counts exactly the jobs that match all of them.`,
      )
    }
  },

  async 'createdAfter is inclusive and createdBefore is exclusive'({ store, advance }) {
    const { job: first } = await store.create(sampleJob())
    await advance(20)
    const { job: second } = await store.create(sampleJob())
    const { createdAt } = second
    assert.deepEqual(
      ids(await store.list({ createdAfter: createdAt, limit: 10 })),
      [second.id],
      'createdAfter shows jobs created at that time or later.',
    )
    assert.deepEqual(
      ids(await store.list({ createdBefore: createdAt, limit: 10 })),
      [first.id],
      'createdBefore shows jobs created earlier than that time.',
    )
    assert.equal(
      await store.count({ createdAfter: createdAt, createdBefore: createdAt }),
      0,
      'createdAfter and createdBefore with the same time show no job.',
    )
  },

  async 'completedAfter is inclusive, completedBefore is exclusive, and neither shows a job that has not ended'({
    store,
    advance,
  }) {
    const job = await claimed(store)
    await store.create(sampleJob())
    await advance(20)
    const ended = await store.apply(job.id, succeed(job))
    const time = ended?.completedAt ?? 0
    assert.deepEqual(
      ids(await store.list({ completedAfter: time, limit: 10 })),
      [job.id],
      'completedAfter shows jobs that ended at that time or later.',
    )
    assert.deepEqual(
      ids(await store.list({ completedBefore: time + 1, limit: 10 })),
      [job.id],
      'completedBefore shows jobs that ended earlier than that time.',
    )
    assert.equal(await store.count({ completedAfter: time + 1 }), 0, 'completedAfter shows no job that ended earlier.')
    assert.equal(
      await store.count({ completedBefore: time }),
      0,
      'completedBefore shows no job that ended at that time.',
    )
    assert.equal(
      await store.count({ app: job.app, completedAfter: 0, statuses: ['QUEUED'] }),
      0,
      'completedAfter shows no job that has not ended.',
    )
  },

  async 'filters see a change at once'({ store }) {
    const { job } = await store.create(sampleJob())
    const statusNow = async () => {
      const counts = await Promise.all(
        (['QUEUED', 'STARTED', 'SUCCEEDED', 'FAILED'] as const).map(async (status) => [
          status,
          await store.count({ app: job.app, statuses: [status] }),
        ]),
      )
      return counts.filter(([, count]) => count !== 0)
    }
    assert.deepEqual(await statusNow(), [['QUEUED', 1]], 'A new job is counted as QUEUED.')
    const running = await claim(store, job.id)
    assert.deepEqual(await statusNow(), [['STARTED', 1]], 'A claimed job is counted as STARTED at once.')
    await store.apply(job.id, succeed(running))
    assert.deepEqual(await statusNow(), [['SUCCEEDED', 1]], 'A job that succeeded is counted as SUCCEEDED at once.')
    await store.apply(job.id, { kind: 'delete' })
    assert.deepEqual(await statusNow(), [], 'A deleted job is no longer counted.')
  },

  async 'jobs are found by any of their uploaded inputs until the jobs are deleted'({ store }) {
    const { job } = await store.create(
      sampleJob({ uploads: { inputUrl: 'uploads/app-1/one', other: 'uploads/app-1/two' } }),
    )
    for (const uploadKey of ['uploads/app-1/one', 'uploads/app-1/two']) {
      assert.deepEqual(
        ids(await store.list({ uploadKey, limit: 5 })),
        [job.id],
        'A job is listed by the key of each of its inputs.',
      )
      assert.equal(
        await store.count({ uploadKey, statuses: ['QUEUED', 'STARTED'] }),
        1,
        'A job is counted by the key of each of its inputs.',
      )
    }
    assert.equal(await store.count({ uploadKey: 'uploads/app-1/o' }), 0, 'The beginning of a key does not match.')
    assert.equal(
      await store.count({ uploadKey: 'uploads/app-1/one%' }),
      0,
      'A percent sign in a key is not a wildcard.',
    )
    await store.apply(job.id, { kind: 'delete' })
    assert.equal(await store.count({ uploadKey: 'uploads/app-1/one' }), 0, 'The inputs of a deleted job are not found.')
  },

  async 'a search finds words in any order, ignoring case and accents, and complete ids'({ store, advance }) {
    const named = async (name: string | null, batchName: string | null = null, app = 'app-1') => {
      await advance(1)
      return (await store.create(sampleJob({ app, name, batchName }))).job
    }
    const first = await named('Łódź – Don’t Stop (Live).flac', 'Żółć')
    const second = await named('STRASSE  Ørsted\t100%_a\\b.wav')
    const third = await named(null)
    const other = await named('Łódź', null, 'app-2')
    const long = await named(`${'ﷺ'.repeat(300)} last`)
    const found: [search: string, ...jobs: JobRecord[]][] = [
      ['lodz', first],
      ['LÓDZ', first],
      ["don't", first],
      ['“stop'],
      ['stop don‘t zolc', first],
      ['op odz', first],
      ['lodz-'],
      ['lodz orsted'],
      ['straße', second],
      ['strasse orsted 100', second],
      ['%', second],
      ['100%_A\\b', second],
      ['ø', second, first],
      ['_', second],
      ['null'],
      [third.id, third],
      [third.id.slice(0, -1)],
      [other.id],
      ['last', long],
      [' \u0000\ud800 ', long, third, second, first],
    ]
    for (const [search, ...jobs] of found) {
      const query: JobQuery = { app: 'app-1', search }
      assert.deepEqual(
        ids(await store.list({ ...query, limit: 10 })),
        ids(jobs),
        `A search for ${JSON.stringify(search)} finds the jobs whose name and batch have all of its words.`,
      )
      assert.equal(await store.count(query), jobs.length, `So does a count of ${JSON.stringify(search)}.`)
    }
    assert.equal(await store.count({ search: 'lodz' }), 2, 'Without an application, a search covers all.')
    const [before] = await store.list({ app: 'app-1', search: 's', limit: 1 })
    assert.deepEqual(
      ids(await store.list({ app: 'app-1', search: 's', limit: 9, after: before })),
      [second.id, first.id],
      'The next page of a search continues after the last job of the previous page.',
    )
    await store.apply(first.id, { kind: 'delete' })
    assert.equal(await store.count({ app: 'app-1', search: 'lodz' }), 0, 'A deleted job is not found.')
  },

  async 'filters match text literally'({ store }) {
    const names = ['a_b', 'axb', 'a%', '%', "it's", 'Ü', 'ü', ' a', 'a']
    for (const batchName of names)
      await store.create(sampleJob({ batchName, workflow: `w/${batchName}`, app: `app ${batchName}` }))
    for (const batchName of names) {
      assert.equal(
        await store.count({ batchName }),
        1,
        `A filter by batch name matches ${JSON.stringify(batchName)} literally.`,
      )
      assert.equal(
        await store.count({ workflows: [`w/${batchName}`] }),
        1,
        `A filter by workflow matches ${JSON.stringify(batchName)} literally.`,
      )
      assert.equal(
        (await store.list({ app: `app ${batchName}`, limit: 9 })).length,
        1,
        `A filter by application matches ${JSON.stringify(batchName)} literally.`,
      )
    }
  },
} satisfies Cases<JobStoreContext>

/** Forty jobs over all statuses and filter values. */
async function variedJobs(store: JobStore, advance: (milliseconds: number) => Promise<void>): Promise<JobRecord[]> {
  const jobs: JobRecord[] = []
  for (let n = 0; n < 40; n++) {
    const { job } = await store.create(
      sampleJob({
        app: n % 3 ? 'app-1' : 'app-2',
        workflow: `service/${'abc'[(n % 5) % 3]}`,
        batchName: [null, 'batch', ''][(n % 7) % 3],
        name: n % 5 ? 'A song' : null,
        uploads: n % 4 ? {} : { inputUrl: 'uploads/app-1/shared' },
      }),
    )
    await advance(1)
    const status = n % 6
    const claimed =
      status === 1 || status === 2 ? await store.claim({ id: job.id, owner: 'w', leaseMs: 3_600_000 }) : undefined
    const changed =
      status === 2 && claimed
        ? await store.apply(job.id, succeed(claimed))
        : status === 3
          ? await store.apply(job.id, cancel())
          : claimed
    if (status === 4) await store.apply(job.id, { kind: 'delete' })
    else jobs.push(changed ?? job)
  }
  return jobs
}

// oxlint-disable-next-line complexity -- a table of filters, one condition each
function matches(job: JobRecord, query: JobQuery): boolean {
  return (
    (query.app === undefined || job.app === query.app) &&
    (query.statuses === undefined || query.statuses.includes(job.status)) &&
    (query.workflows === undefined || query.workflows.includes(job.workflow)) &&
    (query.batchName === undefined || job.batchName === query.batchName) &&
    (query.createdAfter === undefined || job.createdAt >= query.createdAfter) &&
    (query.createdBefore === undefined || job.createdAt < query.createdBefore) &&
    (query.completedAfter === undefined || (job.completedAt ?? -Infinity) >= query.completedAfter) &&
    (query.completedBefore === undefined || (job.completedAt ?? Infinity) < query.completedBefore) &&
    (query.uploadKey === undefined || Object.values(job.uploads).includes(query.uploadKey)) &&
    (query.search ?? '')
      .split(' ')
      .every((word) => `${job.name ?? ''} ${job.batchName ?? ''}`.toLowerCase().includes(word.toLowerCase()))
  )
}

/**
 * Yields every choice of at most three filters, so that every pair of conditions in a query builder occurs, alone and
 * beside a third.
 */
function* combinations(options: { [Field in keyof JobQuery]-?: JobQuery[Field][] }): Generator<JobQuery> {
  const fields = Object.entries(options)
  const build = function* (index: number, chosen: Record<string, unknown>): Generator<JobQuery> {
    const entry = fields[index]
    if (!entry) return yield chosen
    const [field, values] = entry
    for (const value of values) {
      if (value === undefined) yield* build(index + 1, chosen)
      else if (Object.keys(chosen).length < 3) yield* build(index + 1, { ...chosen, [field]: value })
    }
  }
  yield* build(0, {})
}
