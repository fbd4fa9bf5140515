import assert from 'node:assert/strict'
import type { JobStore } from '../../core/engine/ports/job-store.js'
import { assertNone } from '../broken-promise.js'
import { leaseMs, type JobStoreContext } from '../job-store-context.js'
import { accepted, cancel, claim, claimed, fail, heartbeat, ids, requeue, sampleJob, succeed } from '../job-samples.js'
import type { Cases } from '../suite.js'

export const sweepCases = {
  async 'only started jobs whose lease ran out are lapsed, earliest first'({ store, advance }) {
    const [second, first, held, requeued, queued, ended, deleted] = await createInOrder(store, advance, 7)
    await store.claim({ id: first, owner: 'w', leaseMs })
    await advance(20)
    for (const id of [second, requeued, ended, deleted]) await store.claim({ id, owner: 'w', leaseMs })
    await store.claim({ id: held, owner: 'w', leaseMs: leaseMs * 100 })
    await store.apply(requeued, requeue(1))
    await store.apply(ended, fail(1))
    await store.apply(deleted, { kind: 'delete' })
    assert.deepEqual(await dueIds(store, 'lapsed'), [], 'No lease has run out yet.')
    await advance(leaseMs + 100)
    assert.deepEqual(
      await dueIds(store, 'lapsed'),
      [first, second],
      'Only started jobs whose lease ran out are lapsed, the earliest first.',
    )
    assert.deepEqual(await dueIds(store, 'lapsed', 1), [first], 'due returns at most its limit.')
    assert.deepEqual(await store.due('lapsed', 1), [await store.get(first)], 'Calling due changes nothing.')
    assert.equal((await store.get(queued))?.status, 'QUEUED', 'Calling due for lapsed jobs leaves queued ones alone.')
  },

  async 'only lapsed jobs, canceled or past their deadline, are abandoned and end without a worker'({
    store,
    advance,
  }) {
    const now = await store.time()
    const deadline = now + leaseMs / 2
    const [canceled, overdue, lapsed, held, queued, impostor] = await Promise.all(
      [
        {},
        { deadline },
        { deadline: now + leaseMs * 1000 },
        { deadline },
        { deadline },
        { metadata: { cancelRequested: 'true' } },
      ].map(async (fields) => (await store.create(sampleJob(fields))).job.id),
    )
    assert.ok(canceled && overdue && lapsed && held && queued && impostor, 'Six jobs were created.')
    for (const id of [canceled, overdue, lapsed, impostor]) {
      await store.claim({ id, owner: 'w', leaseMs })
      await advance(20)
    }
    await store.claim({ id: held, owner: 'w', leaseMs: leaseMs * 100 })
    assert.equal(
      (await store.apply(canceled, cancel()))?.status,
      'STARTED',
      'A job that a worker holds is marked as canceled.',
    )
    await store.apply(held, cancel())
    assert.deepEqual(await dueIds(store, 'abandoned'), [], 'No lease has run out yet.')
    await advance(leaseMs + 100)
    assert.deepEqual(
      await dueIds(store, 'abandoned'),
      [canceled, overdue],
      'Lapsed jobs that were canceled or whose deadline passed are abandoned, the earliest first, and no others.',
    )
    assert.deepEqual(await dueIds(store, 'abandoned', 1), [canceled], 'due returns at most its limit.')
    const miss = { ...cancel(), kind: 'miss' } as const
    assertNone(await store.apply(lapsed, miss), 'A job whose deadline has not passed has not missed it.')
    assertNone(await store.apply(held, miss), 'Only its worker can end a job that a worker holds.')
    const ended = [await store.apply(canceled, cancel()), await store.apply(overdue, miss)]
    for (const job of ended) {
      assert.equal(job?.status, 'FAILED', 'An abandoned job can be ended without a token.')
      assert.equal(job?.lease, null, 'An abandoned job that has ended has no lease.')
      assert.equal(job?.history.at(-1)?.outcome, 'lapsed', 'The history says that its attempt was lost.')
    }
    assertNone(await store.apply(canceled, heartbeat(1)), 'The lost worker can no longer change the job.')
    assert.deepEqual(await dueIds(store, 'abandoned'), [], 'A job that has ended is not abandoned.')
  },

  async 'a lapsed job that is queued again no longer counts as running and keeps its attempts'({ store, advance }) {
    await store.changeRule({ kind: 'application', id: 'a' }, { maxRunning: 1 })
    const [lost, next] = [
      (await store.create(sampleJob({ app: 'a' }))).job.id,
      (await store.create(sampleJob({ app: 'a' }))).job.id,
    ]
    const claimed = await store.claim({ id: lost, owner: 'w', leaseMs })
    const until = claimed?.lease?.until ?? 0
    await advance(leaseMs + 100)
    const release = (lapsedBefore: number) => store.apply(lost, { kind: 'release', lapsedBefore })
    assertNone(await release(until - 1), 'A job whose lease ended after `lapsedBefore` is not released.')
    assertNone(await store.claim({ id: next, owner: 'w', leaseMs }), 'A lapsed job counts as running.')
    const job = await release(until)
    assert.deepEqual(
      [job?.status, job?.lease, job?.attempts, job?.lapses, job?.history.at(-1)?.outcome],
      ['QUEUED', null, 0, 1, 'lapsed'],
      'A released job is queued again, and its lapse is counted.',
    )
    assertNone(await release(until), 'A queued job is not released.')
    assertNone(await store.apply(lost, heartbeat(1)), 'The lost worker can no longer change the job.')
    assert.deepEqual(await dueIds(store, 'lapsed'), [], 'A released job is no longer lapsed.')
    assert.equal((await store.claim({ id: next, owner: 'w', leaseMs }))?.id, next, 'That makes room for another.')
  },

  async "time() gives the store's clock, in milliseconds"({ store, advance }) {
    const first = await store.time()
    await advance(1000)
    const passed = (await store.time()) - first
    assert.ok(passed >= 1000 && passed < 60_000, 'The time is in milliseconds and by the same clock as leases.')
    const { job } = await store.create(sampleJob())
    assert.ok(job.createdAt >= first + passed, 'Times in records are by the same clock.')
  },

  async 'beginFilePass grants only one of several simultaneous calls, and the next after everyMs'({ store, advance }) {
    const [first, ...others] = await accepted(5, () => store.beginFilePass(leaseMs))
    assert.deepEqual(others, [], 'Exactly one of five simultaneous calls is granted the pass.')
    assertNone(await store.beginFilePass(leaseMs), 'No pass is granted before everyMs has passed.')
    const second = await store.beginFilePass(0)
    await advance(leaseMs + 100)
    const third = await store.beginFilePass(leaseMs)
    assert.ok(first && second && third, 'A pass is granted for everyMs 0, and again when everyMs has passed.')
    assert.match(first.deployment, /^[\w-]{20,}$/, 'The deployment has a random id of at least 20 characters.')
    assert.deepEqual(
      [second.deployment, third.deployment],
      [first.deployment, first.deployment],
      "The deployment's id never changes.",
    )
    assert.ok(first.pass < second.pass && second.pass < third.pass, 'The number of the pass increases.')
  },

  async 'due never returns more than its limit'({ store, advance }) {
    const made = await createInOrder(store, advance, 12)
    for (const id of made) await store.claim({ id, owner: 'w', leaseMs })
    await advance(leaseMs + 100)
    assert.equal((await store.due('lapsed', 5)).length, 5, 'due returns at most its limit of lapsed jobs.')
    assert.deepEqual(await dueIds(store, 'lapsed', 0), [], 'A limit of 0 returns nothing.')
    for (const id of made) await store.apply(id, { kind: 'delete' })
    assert.equal((await store.due('deleted', 5)).length, 5, 'due returns at most its limit of deleted jobs.')
  },

  async 'more damaged records than a batch holds hide no readable one from the sweep'({ store, advance, damage }) {
    assert.ok(damage, 'Give `damage`, or skip the case and say why no record can be damaged.')
    const made = await createInOrder(store, advance, 7)
    const sound = made.at(-1)
    for (const id of made) await store.claim({ id, owner: 'w', leaseMs })
    await advance(leaseMs + 100)
    for (const id of made) if (id !== sound) await damage(id)
    assert.deepEqual(
      await dueIds(store, 'lapsed', 2),
      [sound],
      'Records that cannot be read do not hide the one that can.',
    )
    assert.deepEqual(
      await dueIds(store, 'lapsed', 2),
      [sound],
      'Records that cannot be read do not hide the one that can in a second call, either.',
    )
  },

  async 'a deleted job is due for removal until it is purged'({ store }) {
    const { job } = await store.create(sampleJob())
    assert.deepEqual(await dueIds(store, 'deleted'), [], 'A queued job does not wait for its removal.')
    await store.apply(job.id, { kind: 'delete' })
    assert.deepEqual(await dueIds(store, 'deleted'), [job.id], 'A deleted job waits for its removal.')
    assert.deepEqual(await store.purge({ id: job.id }), [job.id], 'A purge by id returns the id that it removed.')
    assert.deepEqual(await dueIds(store, 'deleted'), [], 'A purged job does not wait for its removal.')
    assert.deepEqual(await store.purge({ id: job.id }), [], 'A purge of a job that does not exist removes nothing.')
    assertNone(await store.apply(job.id, { kind: 'delete' }), 'A purged job cannot be changed.')
    assert.equal((await store.create(sampleJob({ id: job.id }))).created, true, 'The id of a purged job is free.')
  },

  async 'expired results are due for removal until the removal is recorded'({ store, advance }) {
    const [done, failed, kept, deleted] = await createInOrder(store, advance, 4)
    await store.apply(done, succeed(await claim(store, done), { retentionMs: leaseMs }))
    await store.apply(failed, fail((await claim(store, failed)).token, { retentionMs: leaseMs }))
    await store.apply(kept, succeed(await claim(store, kept), { retentionMs: leaseMs * 100 }))
    await store.apply(deleted, succeed(await claim(store, deleted), { retentionMs: leaseMs }))
    await store.apply(deleted, { kind: 'delete' })
    assert.deepEqual(await dueIds(store, 'expired'), [], 'No results have expired yet.')
    await advance(leaseMs + 100)
    assert.deepEqual(
      await dueIds(store, 'expired'),
      [done],
      'Results of jobs that succeeded, are not deleted and have passed their retention are due for removal.',
    )
    await store.apply(done, { kind: 'expire' })
    assert.deepEqual(await dueIds(store, 'expired'), [], 'Results are no longer due once their removal is recorded.')
    assert.equal((await store.get(done))?.status, 'SUCCEEDED', 'A job whose results were removed is still shown.')
  },

  async 'a webhook message is due from its time until an attempt begins or it is settled'({ store, advance }) {
    const [id, silent, deleted] = await createInOrder(store, advance, 3)
    const messages = ['m1', 'm2'].map((message) => ({ id: message, url: 'https://example.com', event: 'job.failed' }))
    await store.apply(id, cancel({ messages }))
    await store.apply(silent, cancel())
    await store.apply(deleted, cancel({ messages }))
    await store.apply(deleted, { kind: 'delete' })
    assert.deepEqual(
      await deliverableIds(store),
      [id],
      'A job with pending messages is due; a deleted job or one without messages is not.',
    )
    await store.apply(id, { kind: 'beginDelivery', deliveryId: 'm1', attempts: 0, retryInMs: leaseMs })
    assert.deepEqual(await deliverableIds(store), [id], 'A job is due as long as its second message is.')
    await store.apply(id, { kind: 'beginDelivery', deliveryId: 'm2', attempts: 0, retryInMs: null })
    assert.deepEqual(await deliverableIds(store), [], 'No message is due without an attempt that is due.')
    await advance(leaseMs + 100)
    assert.deepEqual(await deliverableIds(store), [id], 'A message is due again when its next attempt is.')
    await store.apply(id, { kind: 'endDelivery', deliveryId: 'm1', outcome: 'delivered', status: 200 })
    assert.deepEqual(await deliverableIds(store), [], 'A delivered message is not due again.')
  },

  async 'deliverable limits messages per application and leaves out the given applications'({ store, advance }) {
    const message = { id: 'm', url: 'https://example.com', event: 'job.failed' }
    const ids: string[] = []
    for (const app of ['b', 'b', 'b', 'a', 'B', 'c']) {
      const { job } = await store.create(sampleJob({ app }))
      await store.apply(job.id, cancel({ messages: [message] }))
      ids.push(job.id)
      await advance(20)
    }
    const [b1, b2, b3, a, upper, c] = ids
    const page = { limit: 10, perApp: 10, exceptApps: [] }
    assert.deepEqual(await deliverableIds(store, page), ids, 'Jobs with due messages come in the order of their times.')
    assert.deepEqual(
      await deliverableIds(store, { ...page, limit: 4 }),
      [b1, b2, b3, a],
      'deliverable returns at most `limit` jobs.',
    )
    assert.deepEqual(
      await deliverableIds(store, { ...page, perApp: 2 }),
      [b1, b2, a, upper, c],
      'deliverable returns at most `perApp` jobs of an application: those due the longest.',
    )
    assert.deepEqual(
      await deliverableIds(store, { limit: 3, perApp: 1, exceptApps: ['b', 'a'] }),
      [upper, c],
      'Jobs of excluded applications are left out; names of applications are compared exactly.',
    )
    assert.deepEqual(
      await deliverableIds(store, { ...page, exceptApps: ['a', 'b', 'B', 'c'] }),
      [],
      'deliverable returns nothing if all applications are excluded.',
    )
    assert.deepEqual(await deliverableIds(store, { ...page, limit: 0 }), [], 'A limit of 0 returns nothing.')
    assert.deepEqual(await deliverableIds(store, { ...page, perApp: 0 }), [], 'A perApp of 0 returns nothing.')
  },

  async 'a running job with a valid lease is not due for any reason'({ store }) {
    const { id } = await claimed(store)
    await store.apply(id, heartbeat(1, { leaseMs }))
    for (const reason of ['lapsed', 'abandoned', 'deleted', 'expired'] as const)
      assert.deepEqual(await store.due(reason, 10), [], `A running job with a valid lease is not due as ${reason}.`)
    assert.deepEqual(await deliverableIds(store), [], 'A running job has no message that is due.')
  },

  async 'a purge by id removes only a job that is marked deleted'({ store }) {
    const { job: queued } = await store.create(sampleJob())
    const { job: ended } = await store.create(sampleJob())
    await store.apply(ended.id, cancel())
    assert.deepEqual(await store.purge({ id: queued.id }), [], 'A purge by id leaves a queued job.')
    assert.deepEqual(
      await store.purge({ id: ended.id }),
      [],
      'A purge by id leaves an ended job that is not marked deleted.',
    )
    assert.equal(await store.count({}), 2, 'Both jobs are still there.')
  },

  async 'a purge by age removes only jobs that ended before the given time, earliest first'({ store, advance }) {
    const made = await createInOrder(store, advance, 6)
    const [first, second, third, running, queued, deleted] = made
    const end = async (id: string) => {
      const ended = await store.apply(id, cancel())
      await advance(20)
      return ended?.completedAt ?? Number.NaN
    }
    const firstEnd = await end(first)
    await end(second)
    const thirdEnd = await end(third)
    await claim(store, running)
    await store.apply(deleted, cancel())
    await store.apply(deleted, { kind: 'delete' })
    await advance(20)
    assert.deepEqual(
      await store.purge({ endedBefore: firstEnd, limit: 10 }),
      [],
      'A job that ended exactly at endedBefore is kept.',
    )
    assert.deepEqual(
      await store.purge({ endedBefore: thirdEnd, limit: 1 }),
      [first],
      'A purge by age removes at most its limit, the earliest end first.',
    )
    assert.deepEqual(
      await store.purge({ endedBefore: thirdEnd, limit: 10 }),
      [second],
      'A purge by age removes jobs that ended before the given time.',
    )
    assert.deepEqual(
      await store.purge({ endedBefore: thirdEnd + 1_000_000, limit: 10 }),
      [third],
      'A second purge by age removes the rest.',
    )
    assert.deepEqual(
      ids(await store.list({ limit: 10 })).sort(),
      [running, queued].sort(),
      'A purge by age leaves queued and running jobs.',
    )
    assert.deepEqual(
      await dueIds(store, 'deleted'),
      [deleted],
      'A purge by age keeps a deleted job, whose files may still exist.',
    )
    assertNone(await store.get(first), 'A purged job is not found.')
    assertNone(await store.apply(first, { kind: 'expire' }), 'A purged job cannot be changed.')
  },
} satisfies Cases<JobStoreContext>

/** Ids of new jobs, each created some milliseconds after the one before. */
type Ids<Count extends number, Made extends string[] = []> = Made['length'] extends Count
  ? Made
  : Ids<Count, [...Made, string]>

async function createInOrder<Count extends number>(
  store: JobStore,
  advance: (milliseconds: number) => Promise<void>,
  count: Count,
): Promise<Ids<Count>> {
  const made: string[] = []
  for (let n = 0; n < count; n++) {
    made.push((await store.create(sampleJob())).job.id)
    await advance(5)
  }
  return made as Ids<Count>
}

async function deliverableIds(store: JobStore, page = { limit: 10, perApp: 10, exceptApps: [] as string[] }) {
  return ids(await store.deliverable(page))
}

async function dueIds(store: JobStore, reason: Parameters<JobStore['due']>[0], limit = 10): Promise<string[]> {
  return ids(await store.due(reason, limit))
}
