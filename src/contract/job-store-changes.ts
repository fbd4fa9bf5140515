import assert from 'node:assert/strict'
import type { JobRecord } from '../core/engine/job/job.js'
import type { JobChange } from '../core/engine/job/transitions.js'
import type { JobStore } from '../core/engine/ports/job-store.js'
import { leaseMs, type JobStoreContext } from './job-store-context.js'
import {
  cancel,
  canceledError,
  fail,
  heartbeat,
  requeue,
  retentionMs,
  sampleError,
  sampleJob,
  sampleOutputs,
  succeed,
} from './job-samples.js'
import type { Cases } from './suite.js'

const messages = [
  { id: 'message-1', url: 'https://example.com/hook', event: 'job.succeeded' },
  { id: 'message-2', url: 'https://example.com/hook', event: 'job.ended' },
]

export const changeCases = {
  async 'a claimed job is started'({ store }) {
    const { job } = await store.create(sampleJob())
    const claimed = await store.claim({ id: job.id, owner: 'worker-1', leaseMs, nonce: 'n-1' })
    assert.ok(claimed?.lease)
    assert.ok(claimed.startedAt !== null && claimed.startedAt >= job.createdAt)
    assert.deepEqual(claimed, {
      ...job,
      status: 'STARTED',
      startedAt: claimed.startedAt,
      token: 1,
      attempts: 1,
      lease: { owner: 'worker-1', token: 1, nonce: 'n-1', until: claimed.lease.until },
      history: [
        {
          token: 1,
          worker: 'worker-1',
          startedAt: claimed.startedAt,
          endedAt: null,
          outcome: 'running',
          reason: null,
        },
      ],
    })
    assert.deepEqual(await store.get(job.id), claimed)
  },

  async 'a heartbeat renews the lease and progress never falls'({ store, advance }) {
    const { id, token } = await claimed(store)
    const first = await store.apply(id, heartbeat(token, { progress: 0.6, stage: 'one', leaseMs }))
    await advance(50)
    const second = await store.apply(id, heartbeat(token, { progress: 0.4, stage: null, leaseMs }))
    assert.ok(first?.lease && second?.lease)
    assert.deepEqual([first.progress, first.stage, second.progress, second.stage], [0.6, 'one', 0.6, null])
    assert.ok(second.lease.until >= first.lease.until + 40)
    assert.deepEqual(await store.get(id), second)
  },

  async 'success stores outputs, details and the end of their retention'({ store }) {
    const { id, token } = await claimed(store)
    const done = await store.apply(id, succeed({ id, token }))
    assert.ok(done?.completedAt)
    assert.deepEqual(
      [done.status, done.progress, done.stage, done.lease, done.error],
      ['SUCCEEDED', 1, null, null, null],
    )
    assert.deepEqual(done.outputs, sampleOutputs(id, token))
    assert.deepEqual(done.details, { model: 'embedded' })
    assert.equal(done.expiresAt, done.completedAt + retentionMs)
    assert.deepEqual(await store.get(id), done)
  },

  async 'failure stores the error'({ store }) {
    const { id, token } = await claimed(store)
    const failed = await store.apply(id, fail(token))
    assert.deepEqual(
      [failed?.status, failed?.error, failed?.outputs, failed?.lease],
      ['FAILED', sampleError, null, null],
    )
    assert.deepEqual(await store.get(id), failed)
  },

  async 'a retry counts the attempt, a hand-back does not'({ store }) {
    const { id, token } = await claimed(store)
    const retried = await store.apply(id, requeue(token))
    assert.deepEqual(
      [retried?.status, retried?.attempts, retried?.shutdownRequeues, retried?.lease, retried?.progress],
      ['QUEUED', 1, 0, null, 0],
    )
    const again = await store.claim({ id, owner: 'w', leaseMs })
    assert.deepEqual([again?.attempts, again?.token], [2, 2])
    const handedBack = await store.apply(id, requeue(2, { onShutdown: true }))
    assert.deepEqual(
      [handedBack?.status, handedBack?.attempts, handedBack?.shutdownRequeues, handedBack?.token],
      ['QUEUED', 1, 1, 2],
    )
    assert.deepEqual(await store.get(id), handedBack)
  },

  async 'a canceled queued job ends at once and cannot be claimed'({ store }) {
    const { job } = await store.create(sampleJob())
    const canceled = await store.apply(job.id, cancel())
    assert.deepEqual([canceled?.status, canceled?.error], ['FAILED', canceledError])
    assert.equal(await store.claim({ id: job.id, owner: 'w', leaseMs }), undefined)
    assert.equal(await store.claim({ owner: 'w', leaseMs }), undefined)
    assert.equal(await store.apply(job.id, cancel()), undefined)
  },

  async 'a canceled running job runs on until its worker learns of it with its heartbeat'({ store }) {
    const { id, token } = await claimed(store)
    const asked = await store.apply(id, cancel())
    assert.deepEqual([asked?.status, asked?.cancelRequested], ['STARTED', true])
    assert.equal((await store.apply(id, heartbeat(token)))?.cancelRequested, true)
    assert.equal((await store.apply(id, fail(token, { error: canceledError })))?.status, 'FAILED')
  },

  async 'an ended job is changed by nothing but retention, delivery and delete'({ store }) {
    for (const end of [succeed, (job: JobRecord) => fail(job.token)]) {
      const running = await claimed(store)
      const ended = await store.apply(running.id, end(running))
      assert.ok(ended)
      await changesNothing(store, ended, [
        heartbeat(1),
        succeed(running),
        fail(1),
        requeue(1),
        requeue(1, { onShutdown: true }),
        cancel(),
      ])
      assert.equal(await store.claim({ id: running.id, owner: 'w', leaseMs }), undefined)
      assert.equal((await store.apply(running.id, { kind: 'expire' }))?.expired, true)
      assert.equal(await store.apply(running.id, { kind: 'expire' }), undefined)
      assert.equal((await store.apply(running.id, { kind: 'delete' }))?.deleted, true)
    }
  },

  async 'a queued job is changed by cancel and delete only'({ store }) {
    const { job } = await store.create(sampleJob())
    await changesNothing(store, job, [
      heartbeat(0),
      heartbeat(1),
      succeed(job),
      fail(0),
      requeue(0),
      { kind: 'expire' },
    ])
  },

  async 'of simultaneous ends of one claim one is accepted'({ store }) {
    for (let round = 0; round < 10; round++) {
      const running = await claimed(store)
      const ends = Array.from({ length: 8 }, (_, n) => (n % 2 ? succeed(running) : fail(running.token)))
      const results = await Promise.all(ends.map((end) => store.apply(running.id, end)))
      const accepted = results.filter((result) => result !== undefined)
      assert.equal(accepted.length, 1)
      assert.deepEqual(await store.get(running.id), accepted[0])
    }
  },

  async 'no simultaneous change of one record is lost'({ store }) {
    const running = await claimed(store)
    await store.apply(
      running.id,
      succeed(running, {
        messages: Array.from({ length: 12 }, (_, n) => ({ id: `m${n}`, url: 'https://example.com', event: 'e' })),
      }),
    )
    await Promise.all(
      Array.from({ length: 12 }, (_, n) =>
        store.apply(running.id, { kind: 'endDelivery', deliveryId: `m${n}`, outcome: 'delivered', status: 200 + n }),
      ),
    )
    const job = await store.get(running.id)
    assert.deepEqual(
      job?.deliveries.map(({ outcome, lastStatus }) => [outcome, lastStatus]),
      Array.from({ length: 12 }, (_, n) => ['delivered', 200 + n]),
    )
  },

  async 'a delete hides the job at once and fences its worker off'({ store, advance }) {
    const running = await claimed(store)
    const { id, token } = running
    const deleted = await store.apply(id, { kind: 'delete' })
    assert.equal(deleted?.deleted, true)
    assert.ok(deleted.token > token)
    assert.equal(await store.get(id), undefined)
    assert.deepEqual(await store.list({ limit: 10 }), [])
    assert.equal(await store.count({}), 0)
    assert.equal(await store.count({ statuses: ['STARTED'] }), 0)
    for (const change of [
      heartbeat(token),
      succeed(running),
      fail(token),
      requeue(token),
      cancel(),
      heartbeat(deleted.token),
      { kind: 'expire' },
      { kind: 'delete' },
    ] satisfies JobChange[]) {
      assert.equal(await store.apply(id, change), undefined, `${change.kind} changed a deleted job`)
    }
    await advance(leaseMs + 100)
    assert.equal(await store.claim({ id, owner: 'w', leaseMs }), undefined)
    assert.equal(await store.claim({ owner: 'w', leaseMs }), undefined)
    assert.deepEqual(await store.due('deleted', 10), [deleted])
  },

  async 'of simultaneous deletes one is accepted'({ store }) {
    const { job } = await store.create(sampleJob())
    const results = await Promise.all(Array.from({ length: 8 }, () => store.apply(job.id, { kind: 'delete' })))
    assert.equal(results.filter((result) => result !== undefined).length, 1)
  },

  async "an end's webhook messages are stored with it, and their tries are taken by count"({ store }) {
    const running = await claimed(store)
    const { id } = running
    const ended = await store.apply(id, succeed(running, { messages }))
    assert.ok(ended?.completedAt)
    assert.deepEqual(
      ended.deliveries,
      messages.map((message) => ({
        ...message,
        occurredAt: ended.completedAt,
        attempts: 0,
        nextAttemptAt: ended.completedAt,
        outcome: 'pending',
        lastStatus: null,
      })),
    )
    const takers = await Promise.all(
      Array.from({ length: 8 }, () =>
        store.apply(id, { kind: 'beginDelivery', deliveryId: 'message-1', attempts: 0, retryInMs: 500 }),
      ),
    )
    assert.equal(takers.filter((taker) => taker !== undefined).length, 1, 'a try of a message is taken once')
    const delivered = await store.apply(id, {
      kind: 'endDelivery',
      deliveryId: 'message-1',
      outcome: 'delivered',
      status: 204,
    })
    assert.deepEqual(
      delivered?.deliveries.map(({ attempts, outcome, lastStatus }) => [attempts, outcome, lastStatus]),
      [
        [1, 'delivered', 204],
        [0, 'pending', null],
      ],
    )
    assert.ok(delivered)
    await changesNothing(store, delivered, [
      { kind: 'endDelivery', deliveryId: 'message-1', outcome: 'gone', status: 410 },
      { kind: 'beginDelivery', deliveryId: 'message-1', attempts: 1, retryInMs: 1 },
      { kind: 'beginDelivery', deliveryId: 'message-2', attempts: 1, retryInMs: 1 },
      { kind: 'beginDelivery', deliveryId: 'unknown', attempts: 0, retryInMs: 1 },
    ])
  },
} satisfies Cases<JobStoreContext>

async function claimed(store: JobStore): Promise<JobRecord> {
  const { job } = await store.create(sampleJob())
  const running = await store.claim({ id: job.id, owner: 'worker', leaseMs })
  assert.ok(running)
  return running
}

async function changesNothing(store: JobStore, job: JobRecord, changes: JobChange[]): Promise<void> {
  for (const change of changes) {
    assert.equal(await store.apply(job.id, change), undefined, `${change.kind} was accepted`)
    assert.deepEqual(
      await store.get(job.id),
      job,
      `${change.kind} was not accepted and changed the record nevertheless`,
    )
  }
}
