import assert from 'node:assert/strict'
import type { JobRecord } from '../../core/engine/job/job.js'
import type { JobQuery, JobStore } from '../../core/engine/ports/job-store.js'
import type { JobStoreContext } from '../job-store-context.js'
import { claim, claimed, ids, newestFirst, sampleJob, sampleOutputs, succeed, together } from '../job-samples.js'
import type { Cases } from '../suite.js'

export const listCases = {
  async 'a list shows every job once, newest first, and those of one millisecond by descending id'({ store, advance }) {
    const made: JobRecord[] = []
    for (let round = 0; round < 5; round++) {
      const jobs = await together(30, () => store.create(sampleJob()))
      made.push(...jobs.map(({ job }) => job))
      await advance(3)
    }
    assert.deepEqual(
      ids(await store.list({ limit: 1000 })),
      ids(made.sort(newestFirst)),
      'A list shows every job once, by createdAt and then by id, both descending.',
    )
    assert.equal(await store.count({}), 150, 'A count without filters counts every job.')
  },

  async 'a count stops at its limit'({ store }) {
    for (let n = 0; n < 5; n++)
      await store.create(sampleJob({ workflow: n === 0 ? 'service/other' : 'service/sample' }))
    const queries: JobQuery[] = [
      {},
      { app: 'app-1' },
      { statuses: ['QUEUED'] },
      { app: 'app-1', workflows: ['service/sample'] },
    ]
    for (const query of queries) {
      assert.equal(await store.count(query, { max: 3 }), 3, `A count of ${JSON.stringify(query)} stops at its max.`)
      assert.equal(
        await store.count(query, { max: 5 }),
        await store.count(query),
        `A max that is not reached does not change the count of ${JSON.stringify(query)}.`,
      )
    }
    assert.equal(await store.count({}, { max: 0 }), 0, 'A count with max 0 is 0.')
  },

  async 'resultBytes counts the results of one application that are not expired, deleted or copied elsewhere'({
    store,
  }) {
    assert.equal(await store.resultBytes('app-1'), 0, 'An application without results has 0 bytes of results.')
    // U+0000 and its escape in plain text: some databases' functions for JSON refuse the one or spoil the other.
    const names = ['\0', '\\u0000', 'plain', 'plain', 'plain']
    const jobs: JobRecord[] = []
    for (const [index, name] of names.entries()) {
      const running = await claimed(store, { name })
      const [output] = Object.values(sampleOutputs(running.id, running.token))
      assert.ok(output, 'The sample has an output.')
      const bytes = 10 ** index
      const outputs = { a: { ...output, bytes }, b: { ...output, bytes }, c: { ...output, bytes, copied: true } }
      jobs.push((await store.apply(running.id, succeed(running, { outputs }))) ?? running)
    }
    await store.create(sampleJob())
    assert.equal(await store.resultBytes('app-1'), 22_222, 'Copied outputs do not count; all others do.')
    const [last, secondLast] = [jobs.at(-1), jobs.at(-2)]
    assert.ok(last && secondLast, 'The ends of these jobs are accepted.')
    await store.apply(last.id, { kind: 'expire' })
    await store.apply(secondLast.id, { kind: 'delete' })
    assert.equal(await store.resultBytes('app-1'), 222, 'Results of expired and of deleted jobs do not count.')
    for (const app of ['app', 'app-2', '', '%'])
      assert.equal(
        await store.resultBytes(app),
        0,
        `Results of app-1 do not count for the application ${JSON.stringify(app)}.`,
      )
  },

  async 'recordBytes counts the records of one application until its jobs are deleted or purged'({ store }) {
    assert.equal(await store.recordBytes('app-1'), 0, 'An application without jobs has 0 bytes of records.')
    const { job } = await store.create(sampleJob())
    const ordinary = await store.recordBytes('app-1')
    assert.ok(ordinary > 0, 'Each record counts.')
    const text = 'x'.repeat(10_000)
    const more = [{ params: { text } }, { metadata: { text } }, { copyResultsTo: { text } }].map(sampleJob)
    const large = await store.createAll(more)
    assert.ok(large, 'Jobs that no limit forbids are created.')
    await store.create(sampleJob({ app: 'app-2' }))
    const all = await store.recordBytes('app-1')
    assert.ok(all >= ordinary + 30_000 && all < ordinary + 60_000, `What clients send counts, once: ${all} bytes.`)
    assert.equal(await store.recordBytes('app-2'), ordinary, 'Records of app-1 do not count for app-2.')
    const ended = await store.apply(job.id, succeed(await claim(store, job.id)))
    assert.ok(ended?.completedAt, 'The end is accepted.')
    assert.equal(await store.recordBytes('app-1'), all, 'The end of a job does not change the bytes of its record.')
    for (const { id } of large) await store.apply(id, { kind: 'delete' })
    assert.equal(await store.recordBytes('app-1'), ordinary, 'Records of deleted jobs do not count.')
    for (const { id } of large) await store.purge({ id })
    assert.equal(await store.recordBytes('app-1'), ordinary, 'Purging them does not change the count.')
    await store.purge({ endedBefore: ended.completedAt + 1, limit: 1 })
    assert.equal(await store.recordBytes('app-1'), 0, 'Purged records do not count.')
  },

  async 'pages by offset show every job exactly once'({ store }) {
    const made = await createMany(store, 25)
    const pages = await Promise.all([0, 10, 20, 30].map((offset) => store.list({ limit: 10, offset })))
    assert.deepEqual(
      pages.map((page) => page.length),
      [10, 10, 5, 0],
      'Pages of 10 of 25 jobs have 10, 10, 5 and 0.',
    )
    assert.deepEqual(ids(pages.flat()), made, 'Pages by offset show every job once, in the order of the list.')
    assert.deepEqual(
      ids(await store.list({ app: 'app-1', statuses: ['QUEUED'], limit: 3, offset: 4 })),
      made.slice(4, 7),
      'offset skips jobs that match the filters.',
    )
    assert.deepEqual(await store.list({ limit: 0 }), [], 'A limit of 0 lists nothing.')
  },

  async 'pages by cursor show every job exactly once while others are added and deleted'({ store, advance }) {
    const made = await createMany(store, 30)
    const seen: string[] = []
    let after: { createdAt: number; id: string } | undefined
    // A store that ignores the cursor would page forever.
    for (let pages = 0; pages < 10; pages++) {
      const page = await store.list({ limit: 7, after })
      const last = page.at(-1)
      if (!last) break
      seen.push(...ids(page))
      after = last
      await advance(2)
      await store.create(sampleJob({ name: 'added meanwhile' }))
      // The cursor's own job is removed; its position in the order remains.
      await store.apply(last.id, { kind: 'delete' })
      await store.purge({ id: last.id })
    }
    assert.deepEqual(seen, made, 'Pages by cursor show every job once, whatever is added and deleted meanwhile.')
  },

  async 'a cursor works with a filter and among jobs of the same millisecond'({ store }) {
    for (let n = 0; n < 40; n++) await store.create(sampleJob({ app: n % 2 ? 'app-1' : 'app-2' }))
    const all = ids(await store.list({ app: 'app-1', limit: 100 }))
    const seen: string[] = []
    let after: JobRecord | undefined
    for (let pages = 0; pages < 10; pages++) {
      const page: JobRecord[] = await store.list({ app: 'app-1', limit: 3, after })
      const last = page.at(-1)
      if (!last) break
      seen.push(...ids(page))
      after = last
    }
    assert.equal(seen.length, 20, 'Pages by cursor show the twenty jobs of the application.')
    assert.deepEqual(
      seen,
      all,
      'Pages by cursor show the jobs in the order of the list, also those of one millisecond.',
    )
  },

  async 'a page leaves out a record that cannot be read and shows the others, and `unreadable` names it'({
    store,
    advance,
    damage,
  }) {
    assert.ok(damage, 'Give `damage`, or skip the case and say why no record can be damaged.')
    assert.deepEqual(await store.unreadable(), [], 'No record is unreadable yet.')
    const made: string[] = []
    for (let n = 0; n < 5; n++) {
      made.unshift((await store.create(sampleJob({ batchName: 'b' }))).job.id)
      await advance(3)
    }
    const [newest, damaged = '', ...others] = made
    await damage(damaged)
    for (const query of [{}, { app: 'app-1' }, { app: 'app-1', batchName: 'b' }]) {
      const page = await store.list({ ...query, limit: 3 })
      assert.deepEqual(
        ids(page),
        [newest, ...others.slice(0, 2)],
        'Other jobs take the place of the one that cannot be read.',
      )
      const rest = await store.list({ ...query, limit: 3, after: page[2] })
      assert.deepEqual(ids(rest), others.slice(2), 'The next page continues after the last job of the previous page.')
    }
    assert.deepEqual(await store.unreadable(), [damaged], 'unreadable names the job whose record cannot be read.')
  },
} satisfies Cases<JobStoreContext>

/** Ids in the order of the list. */
async function createMany(store: JobStore, count: number): Promise<string[]> {
  const made = await together(count, async () => (await store.create(sampleJob())).job)
  return ids(made.sort(newestFirst))
}
