import assert from 'node:assert/strict'
import type { JobRecord } from '../core/engine/job/job.js'
import type { JobStore } from '../core/engine/ports/job-store.js'
import { leaseMs, type JobStoreContext } from './job-store-context.js'
import { cancel, fail, heartbeat, requeue, sampleJob, succeed } from './job-samples.js'
import type { Cases } from './suite.js'

export const sweepCases = {
  async 'lapsed are the started jobs whose lease ran out, earliest first, and no others'({ store, advance }) {
    const [second, first, held, requeued, queued, ended, deleted] = await createInTurn(store, advance, 7)
    await store.claim({ id: first, owner: 'w', leaseMs })
    await advance(20)
    for (const id of [second, requeued, ended, deleted]) await store.claim({ id, owner: 'w', leaseMs })
    await store.claim({ id: held, owner: 'w', leaseMs: leaseMs * 100 })
    await store.apply(requeued, requeue(1))
    await store.apply(ended, fail(1))
    await store.apply(deleted, { kind: 'delete' })
    assert.deepEqual(await dueIds(store, 'lapsed'), [])
    await advance(leaseMs + 100)
    assert.deepEqual(await dueIds(store, 'lapsed'), [first, second])
    assert.deepEqual(await dueIds(store, 'lapsed', 1), [first])
    assert.deepEqual(await store.due('lapsed', 1), [await store.get(first)], 'asking changes nothing')
    assert.equal((await store.get(queued))?.status, 'QUEUED')
  },

  async 'a pass over all files is granted to one of simultaneous callers, and again after its time'({
    store,
    advance,
  }) {
    const calls = await Promise.all(Array.from({ length: 5 }, () => store.beginFilePass(leaseMs)))
    const [first, ...others] = calls.filter((pass) => pass !== undefined)
    assert.deepEqual(others, [])
    assert.equal(await store.beginFilePass(leaseMs), undefined)
    const second = await store.beginFilePass(0)
    await advance(leaseMs + 100)
    const third = await store.beginFilePass(leaseMs)
    assert.ok(first && second && third)
    assert.match(first.deployment, /^[\w-]{20,}$/)
    assert.deepEqual([second.deployment, third.deployment], [first.deployment, first.deployment])
    assert.ok(first.pass < second.pass && second.pass < third.pass)
  },

  async 'no kind of due returns more than its limit'({ store, advance }) {
    const ids = await createInTurn(store, advance, 12)
    for (const id of ids) await store.claim({ id, owner: 'w', leaseMs })
    await advance(leaseMs + 100)
    assert.equal((await store.due('lapsed', 5)).length, 5)
    assert.deepEqual(await dueIds(store, 'lapsed', 0), [])
    for (const id of ids) await store.apply(id, { kind: 'delete' })
    assert.equal((await store.due('deleted', 5)).length, 5)
  },

  async 'more damaged records than a batch holds keep no sound one from the sweep'({ store, advance, damage }) {
    assert.ok(damage, 'Give `damage`, or skip the case and say why no record can be damaged.')
    const ids = await createInTurn(store, advance, 7)
    const sound = ids.at(-1)
    for (const id of ids) await store.claim({ id, owner: 'w', leaseMs })
    await advance(leaseMs + 100)
    for (const id of ids) if (id !== sound) await damage(id)
    assert.deepEqual(await dueIds(store, 'lapsed', 2), [sound])
    assert.deepEqual(await dueIds(store, 'lapsed', 2), [sound])
  },

  async 'a deleted job is due until it is purged'({ store }) {
    const { job } = await store.create(sampleJob())
    assert.deepEqual(await dueIds(store, 'deleted'), [])
    await store.apply(job.id, { kind: 'delete' })
    assert.deepEqual(await dueIds(store, 'deleted'), [job.id])
    assert.deepEqual(await store.purge({ id: job.id }), [job.id])
    assert.deepEqual(await dueIds(store, 'deleted'), [])
    assert.deepEqual(await store.purge({ id: job.id }), [])
    assert.equal(await store.apply(job.id, { kind: 'delete' }), undefined)
    assert.equal((await store.create(sampleJob({ id: job.id }))).created, true, 'a purged id is unknown')
  },

  async 'results are due for removal from their time on until it is noted'({ store, advance }) {
    const [done, failed, kept, deleted] = await createInTurn(store, advance, 4)
    await store.apply(done, succeed(await claim(store, done), { retentionMs: leaseMs }))
    await store.apply(failed, fail((await claim(store, failed)).token, { retentionMs: leaseMs }))
    await store.apply(kept, succeed(await claim(store, kept), { retentionMs: leaseMs * 100 }))
    await store.apply(deleted, succeed(await claim(store, deleted), { retentionMs: leaseMs }))
    await store.apply(deleted, { kind: 'delete' })
    assert.deepEqual(await dueIds(store, 'expired'), [])
    await advance(leaseMs + 100)
    assert.deepEqual(await dueIds(store, 'expired'), [done])
    await store.apply(done, { kind: 'expire' })
    assert.deepEqual(await dueIds(store, 'expired'), [])
    assert.equal((await store.get(done))?.status, 'SUCCEEDED')
  },

  async 'a webhook message is due from its time on until it is tried or done'({ store, advance }) {
    const [id, silent, deleted] = await createInTurn(store, advance, 3)
    const messages = ['m1', 'm2'].map((message) => ({ id: message, url: 'https://example.com', event: 'job.failed' }))
    await store.apply(id, cancel({ messages }))
    await store.apply(silent, cancel())
    await store.apply(deleted, cancel({ messages }))
    await store.apply(deleted, { kind: 'delete' })
    assert.deepEqual(await dueIds(store, 'deliverable'), [id])
    await store.apply(id, { kind: 'beginDelivery', deliveryId: 'm1', attempts: 0, retryInMs: leaseMs })
    assert.deepEqual(await dueIds(store, 'deliverable'), [id], 'the second message is still due')
    await store.apply(id, { kind: 'beginDelivery', deliveryId: 'm2', attempts: 0, retryInMs: null })
    assert.deepEqual(await dueIds(store, 'deliverable'), [])
    await advance(leaseMs + 100)
    assert.deepEqual(await dueIds(store, 'deliverable'), [id], 'the first is due again')
    await store.apply(id, { kind: 'endDelivery', deliveryId: 'm1', outcome: 'delivered', status: 200 })
    assert.deepEqual(await dueIds(store, 'deliverable'), [])
  },

  async 'jobs of excepted applications are not due'({ store }) {
    const message = { id: 'm', url: 'https://example.com', event: 'job.failed' }
    const ids: string[] = []
    for (const app of ['a', 'b']) {
      const { job } = await store.create(sampleJob({ app }))
      await store.apply(job.id, cancel({ messages: [message] }))
      ids.push(job.id)
    }
    const due = async (...exceptApps: string[]) =>
      (await store.due('deliverable', 10, { exceptApps })).map(({ id }) => id)
    assert.deepEqual((await due()).sort(), [...ids].sort())
    assert.deepEqual(await due('a'), [ids[1]])
    assert.deepEqual(await due('a', 'b'), [])
  },

  async 'a running job is due for nothing'({ store }) {
    const { job } = await store.create(sampleJob())
    await claim(store, job.id)
    await store.apply(job.id, heartbeat(1, { leaseMs }))
    for (const kind of ['lapsed', 'deleted', 'expired', 'deliverable'] as const)
      assert.deepEqual(await store.due(kind, 10), [])
  },

  async 'purge by id forgets only a job that is marked deleted'({ store }) {
    const { job: queued } = await store.create(sampleJob())
    const { job: ended } = await store.create(sampleJob())
    await store.apply(ended.id, cancel())
    assert.deepEqual(await store.purge({ id: queued.id }), [])
    assert.deepEqual(await store.purge({ id: ended.id }), [])
    assert.equal(await store.count({}), 2)
  },

  async 'purge by age forgets jobs that ended before, the earliest first, and no others'({ store, advance }) {
    const ids = await createInTurn(store, advance, 6)
    const [first, second, third, running, queued, deleted] = ids
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
    assert.deepEqual(await store.purge({ endedBefore: firstEnd, limit: 10 }), [], 'endedBefore is exclusive')
    assert.deepEqual(await store.purge({ endedBefore: thirdEnd, limit: 1 }), [first])
    assert.deepEqual(await store.purge({ endedBefore: thirdEnd, limit: 10 }), [second])
    assert.deepEqual(await store.purge({ endedBefore: thirdEnd + 1_000_000, limit: 10 }), [third])
    assert.deepEqual((await store.list({ limit: 10 })).map((job) => job.id).sort(), [running, queued].sort())
    assert.deepEqual(await dueIds(store, 'deleted'), [deleted], 'a deleted job waits until its files are removed')
    assert.equal(await store.get(first), undefined)
    assert.equal(await store.apply(first, { kind: 'expire' }), undefined)
  },
} satisfies Cases<JobStoreContext>

/** Ids of new jobs, each created some milliseconds after the one before. */
type Ids<Count extends number, Made extends string[] = []> = Made['length'] extends Count
  ? Made
  : Ids<Count, [...Made, string]>

async function createInTurn<Count extends number>(
  store: JobStore,
  advance: (milliseconds: number) => Promise<void>,
  count: Count,
): Promise<Ids<Count>> {
  const ids: string[] = []
  for (let n = 0; n < count; n++) {
    ids.push((await store.create(sampleJob())).job.id)
    await advance(5)
  }
  return ids as Ids<Count>
}

async function claim(store: JobStore, id: string): Promise<JobRecord> {
  const job = await store.claim({ id, owner: 'w', leaseMs })
  assert.ok(job)
  return job
}

async function dueIds(store: JobStore, kind: Parameters<JobStore['due']>[0], limit = 10): Promise<string[]> {
  return (await store.due(kind, limit)).map((job) => job.id)
}
