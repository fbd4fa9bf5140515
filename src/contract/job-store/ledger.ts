import assert from 'node:assert/strict'
import { dayMs, dayOf } from '../../core/engine/job/quota.js'
import type { JobRecord } from '../../core/engine/job/job.js'
import type { JobStore, Ledger } from '../../core/engine/ports/job-store.js'
import { assertNone } from '../broken-promise.js'
import { cancel, fail, heartbeat, sampleJob, succeed, together } from '../job-samples.js'
import type { JobStoreContext } from '../job-store-context.js'
import type { Cases } from '../suite.js'

const worker = { owner: 'worker', leaseMs: 60_000 }
const always = { fromDay: 0, toDay: dayOf(Date.now()) + 100_000 }
const used = { audioSeconds: 2.5, bytes: 1_000_000_007, processorSeconds: 0.25 }

/** Ends a job and returns its record. */
async function ended(store: JobStore, fields: Partial<JobRecord> = {}, how: 'succeed' | 'fail' = 'succeed') {
  const { job } = await store.create(sampleJob(fields))
  const { token = 0 } = (await store.claim({ id: job.id, ...worker })) ?? {}
  const end =
    how === 'succeed' ? succeed(job, { token, used, details: { model: { name: 'm' } } }) : fail(token, { used })
  const after = await store.apply(job.id, end)
  assert.ok(after, 'The job has ended.')
  return after
}

const ids = async (ledger: Ledger) => (await ledger.entries({ ...always, limit: 100 })).map(({ id }) => id)

/** A store without a ledger has nothing to prove. */
export const ledgerCases = {
  async 'each end of a job, whatever its cause, has one entry in the ledger, as in the record'({ store, advance }) {
    const { ledger } = store
    if (!ledger) return
    const done = await ended(store, { workflow: 'service/a "b"', app: 'é' })
    await advance(5)
    const failed = await ended(store, { priority: 1 }, 'fail')
    await advance(5)
    const { job: waiting } = await store.create(sampleJob())
    const canceled = await store.apply(waiting.id, cancel())
    const { job: overdue } = await store.create(sampleJob({ deadline: 1 }))
    await advance(5)
    const missed = await store.apply(overdue.id, { ...cancel(), kind: 'miss' })
    await store.create(sampleJob())
    const entries = await ledger.entries({ ...always, limit: 100 })
    assert.deepEqual(
      entries,
      [done, failed, canceled, missed].map((job) => job?.settlement),
      'The ledger has what the records say, in the order of the ends.',
    )
    const [first] = entries
    assert.deepEqual(
      first,
      {
        ...used,
        id: `${done.id}/0`,
        jobId: done.id,
        app: 'é',
        workflow: 'service/a "b"',
        model: 'm',
        priority: 0,
        result: 'SUCCEEDED',
        error: null,
        reason: null,
        runMs: (done.completedAt ?? 0) - (done.history[0]?.startedAt ?? 0),
        endedAt: done.completedAt,
      },
      'An entry says what was used, and by whom.',
    )
    assert.deepEqual(
      entries[1] && { error: entries[1].error, reason: entries[1].reason, runMs: entries[1].runMs },
      { error: failed.error?.code, reason: failed.error?.reason, runMs: null },
      'An entry says why a job failed.',
    )
  },

  async 'a retried job that ends again has a second entry; other changes after an end add none'({ store, advance }) {
    const { ledger } = store
    if (!ledger) return
    const job = await ended(store, {}, 'fail')
    assertNone(await store.apply(job.id, fail(job.token)), 'A second end does not apply.')
    await store.apply(job.id, { kind: 'expire' })
    assert.deepEqual(await ids(ledger), [`${job.id}/0`], 'An end is counted once.')
    await advance(5)
    await store.apply(job.id, { kind: 'retry' })
    assert.deepEqual(await ids(ledger), [`${job.id}/0`], 'A retry is not an end.')
    const { token = 0 } = (await store.claim({ id: job.id, ...worker })) ?? {}
    await store.apply(job.id, succeed(job, { token }))
    assert.deepEqual(await ids(ledger), [`${job.id}/0`, `${job.id}/1`], 'Each end has an entry of its own.')
  },

  async 'an entry outlives its job, and a job that is deleted before it ends has none'({ store, advance }) {
    const { ledger } = store
    if (!ledger) return
    const job = await ended(store)
    await advance(5)
    const { job: unfinished } = await store.create(sampleJob())
    for (const { id } of [job, unfinished]) {
      await store.apply(id, { kind: 'delete' })
      await store.purge({ id })
    }
    assert.deepEqual(await ids(ledger), [`${job.id}/0`], 'The ledger keeps the end of a job that is gone.')
  },

  async 'a forced cancel ends a running job and deletes it, with what its last heartbeat told of its use'({ store }) {
    const { ledger } = store
    const { job } = await store.create(sampleJob())
    const { token = 0 } = (await store.claim({ id: job.id, ...worker })) ?? {}
    await store.apply(job.id, heartbeat(token, { used }))
    const forced = { ...cancel(), force: true, usage: { bytes: used.bytes } }
    const ended = await store.apply(job.id, forced)
    assert.equal(ended?.status, 'FAILED', 'A running job ends at once.')
    assertNone(await store.get(job.id), 'It is deleted in the same write.')
    assert.equal((await store.due('deleted', 2))[0]?.id, job.id, 'The sweep removes its files.')
    assertNone(await store.apply(job.id, heartbeat(token)), 'Its worker can no longer change it.')
    assertNone(await store.apply(job.id, forced), 'It ends once.')
    assert.deepEqual({ ...ended.settlement, ...used }, ended.settlement, 'It used what the last heartbeat told.')
    assert.equal((await store.usage(job.app)).bytes, used.bytes, 'The given usage is counted.')
    if (ledger) assert.deepEqual(await ledger.entries({ ...always, limit: 2 }), [ended.settlement], 'It has an entry.')
  },

  async 'simultaneous ends of one job are counted once, and those of different jobs are all counted'({ store }) {
    const { ledger } = store
    if (!ledger) return
    const { job } = await store.create(sampleJob())
    const { token = 0 } = (await store.claim({ id: job.id, ...worker })) ?? {}
    await together(5, (n) => store.apply(job.id, n % 2 ? fail(token) : succeed(job, { token })))
    await together(30, () => ended(store))
    assert.equal(new Set(await ids(ledger)).size, 31, 'Each job that has ended has one entry.')
    const [total] = await ledger.totals(always, [])
    assert.equal(total?.jobs, 31, 'The totals count each of them once.')
  },

  async 'totals by day, application and workflow are the sums of the entries, even after sums were prepared'({
    store,
    advance,
  }) {
    const { ledger } = store
    if (!ledger) return
    for (const [app, workflow] of [
      ['a', 'x'],
      ['a', 'y'],
      ['b', 'x'],
    ] as const)
      await ended(store, { app, workflow })
    await ended(store, { app: 'b', workflow: 'x' }, 'fail')
    const check = async (when: string) => {
      const entries = await ledger.entries({ ...always, limit: 100 })
      const day = dayOf(entries[0]?.endedAt ?? 0)
      const rows = await ledger.totals(always, ['day', 'app', 'workflow'])
      const row = (app: string, workflow: string, jobs: number) => ({
        day,
        app,
        workflow,
        jobs,
        succeeded: 1,
        audioSeconds: 2.5 * jobs,
        bytes: used.bytes * jobs,
        processorSeconds: 0.25 * jobs,
      })
      assert.deepEqual(
        rows,
        [row('a', 'x', 1), row('a', 'y', 1), row('b', 'x', 2)],
        `The totals are the sums of the entries ${when}.`,
      )
      const [, ofB] = await ledger.totals(always, ['app'])
      assert.deepEqual(
        [ofB?.app, ofB?.jobs, ofB?.succeeded, ofB?.day],
        ['b', 2, 1, undefined],
        `So are those by application ${when}.`,
      )
      const [only] = await ledger.totals({ ...always, app: 'a' }, [])
      assert.deepEqual([only?.jobs, only?.bytes], [2, 2 * used.bytes], `So are those of one application ${when}.`)
      assert.deepEqual(
        await ledger.totals({ fromDay: day + 1, toDay: day + 2 }, []),
        [],
        `Other days have no totals ${when}.`,
      )
    }
    await check('during a day')
    await advance(dayMs + 2 * 60 * 60 * 1000)
    assert.equal(await ledger.tidy({ keepFromDay: 0 }), 0, 'No entry is removed that has to be kept.')
    await check('after the day has ended')
    await ledger.tidy({ keepFromDay: 0 })
    await check('after sums were prepared twice')
  },

  async 'entries are read in pages and removed by day'({ store, advance }) {
    const { ledger } = store
    if (!ledger) return
    const jobs: JobRecord[] = []
    for (let n = 0; n < 3; n++) jobs.push(await ended(store, { app: n === 1 ? 'other' : 'app-1' }))
    const all = await ledger.entries({ ...always, limit: 100 })
    const first = await ledger.entries({ ...always, limit: 2 })
    const rest = await ledger.entries({ ...always, limit: 2, after: first[1] })
    assert.deepEqual([...first, ...rest], all, 'Pages follow each other without a gap.')
    assert.equal(
      (await ledger.entries({ ...always, app: 'other', limit: 9 })).length,
      1,
      'Entries can be limited to one application.',
    )
    assert.deepEqual(await ledger.entries({ ...always, limit: 0 }), [], 'A limit of 0 returns no entries.')
    await advance(dayMs)
    const late = await ended(store)
    const today = dayOf(late.completedAt ?? 0)
    assert.equal(await ledger.tidy({ keepFromDay: today }), 3, 'The entries of earlier days are removed.')
    assert.deepEqual(await ids(ledger), [`${late.id}/0`], 'The entries of today are kept.')
    assert.equal((await ledger.totals(always, []))[0]?.jobs, 1, 'The sums of earlier days are kept.')
  },
} satisfies Cases<JobStoreContext>
