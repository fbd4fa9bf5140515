import assert from 'node:assert/strict'
import type { JobRecord } from '../../core/engine/job/job.js'
import type { JobChange } from '../../core/engine/job/transitions.js'
import { assertNone } from '../broken-promise.js'
import { leaseMs, type JobStoreContext } from '../job-store-context.js'
import {
  accepted,
  cancel,
  canceledError,
  changesNothing,
  claimed,
  fail,
  heartbeat,
  requeue,
  retentionMs,
  sampleError,
  sampleJob,
  sampleOutputs,
  succeed,
} from '../job-samples.js'
import type { Cases } from '../suite.js'

export const changeCases = {
  async 'claiming a job starts it'({ store }) {
    const { job } = await store.create(sampleJob())
    const claimed = await store.claim({ id: job.id, owner: 'worker-1', leaseMs, nonce: 'n-1' })
    assert.ok(claimed?.lease, 'A claim of a queued job is granted, with a lease.')
    assert.ok(
      claimed.startedAt !== null && claimed.startedAt >= job.createdAt,
      'startedAt is the time of the first claim.',
    )
    assert.deepEqual(
      claimed,
      {
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
      },
      'A claimed job is STARTED under a lease with token 1, its attempt is counted, and nothing else of it changes.',
    )
    assert.deepEqual(await store.get(job.id), claimed, 'get shows what the claim returned.')
  },

  async 'a heartbeat renews the lease, and progress never decreases'({ store, advance }) {
    const { id, token } = await claimed(store)
    const first = await store.apply(id, heartbeat(token, { progress: 0.6, stage: 'one', leaseMs }))
    await advance(50)
    const second = await store.apply(id, heartbeat(token, { progress: 0.4, stage: null, leaseMs }))
    assert.ok(first?.lease && second?.lease, 'A heartbeat under a held lease is accepted.')
    assert.deepEqual(
      [first.progress, first.stage, second.progress, second.stage],
      [0.6, 'one', 0.6, null],
      'Progress never decreases, and the stage is that of the last heartbeat.',
    )
    assert.ok(
      second.lease.until >= first.lease.until + 40,
      'A heartbeat renews the lease from the time at which it is made.',
    )
    assert.deepEqual(await store.get(id), second, 'get shows what the heartbeat returned.')
  },

  async 'success stores the outputs, the details and when they expire'({ store }) {
    const { id, token } = await claimed(store)
    const done = await store.apply(id, succeed({ id, token }))
    assert.ok(done?.completedAt, 'Success under a held lease is accepted and sets completedAt.')
    assert.deepEqual(
      [done.status, done.progress, done.stage, done.lease, done.error],
      ['SUCCEEDED', 1, null, null, null],
      'A job that succeeded is SUCCEEDED at progress 1, without stage, lease and error.',
    )
    assert.deepEqual(done.outputs, sampleOutputs(id, token), 'Outputs are stored as they were given.')
    assert.deepEqual(done.details, { model: 'embedded' }, 'Details are stored as they were given.')
    assert.equal(
      done.expiresAt,
      done.completedAt + retentionMs,
      'Results expire when their retention has passed since the end of the job.',
    )
    assert.deepEqual(await store.get(id), done, 'get shows what the end returned.')
  },

  async 'failure stores the error'({ store }) {
    const { id, token } = await claimed(store)
    const failed = await store.apply(id, fail(token))
    assert.deepEqual(
      [failed?.status, failed?.error, failed?.outputs, failed?.lease],
      ['FAILED', sampleError, null, null],
      'A job that failed is FAILED with its error, without outputs and lease.',
    )
    assert.deepEqual(await store.get(id), failed, 'get shows what the end returned.')
  },

  async 'a requeue after a failure counts the attempt; a requeue on shutdown does not'({ store }) {
    const { id, token } = await claimed(store)
    const retried = await store.apply(id, requeue(token))
    assert.deepEqual(
      [retried?.status, retried?.attempts, retried?.shutdownRequeues, retried?.lease, retried?.progress],
      ['QUEUED', 1, 0, null, 0],
      'A job requeued after a failure is QUEUED, its attempt stays counted, and its lease and progress are gone.',
    )
    const again = await store.claim({ id, owner: 'w', leaseMs })
    assert.deepEqual(
      [again?.attempts, again?.token],
      [2, 2],
      'The next claim counts another attempt and has the next token.',
    )
    const handedBack = await store.apply(id, requeue(2, { onShutdown: true }))
    assert.deepEqual(
      [handedBack?.status, handedBack?.attempts, handedBack?.shutdownRequeues, handedBack?.token],
      ['QUEUED', 1, 1, 2],
      'A requeue on shutdown does not count the attempt.',
    )
    assert.deepEqual(await store.get(id), handedBack, 'get shows what the requeue returned.')
  },

  async 'a canceled queued job ends at once and cannot be claimed'({ store }) {
    const { job } = await store.create(sampleJob())
    const canceled = await store.apply(job.id, cancel())
    assert.deepEqual(
      [canceled?.status, canceled?.error],
      ['FAILED', canceledError],
      'A canceled queued job is FAILED with the error of the cancel.',
    )
    assertNone(await store.claim({ id: job.id, owner: 'w', leaseMs }), 'A canceled job is not claimed by name.')
    assertNone(await store.claim({ owner: 'w', leaseMs }), 'A canceled job is not claimed as the next one.')
    assertNone(await store.apply(job.id, cancel()), 'An ended job cannot be canceled again.')
  },

  async 'a canceled running job keeps running until a heartbeat tells its worker'({ store }) {
    const { id, token } = await claimed(store)
    const asked = await store.apply(id, cancel())
    assert.deepEqual(
      [asked?.status, asked?.cancelRequested],
      ['STARTED', true],
      'A canceled running job stays STARTED and is marked as canceled.',
    )
    assert.equal(
      (await store.apply(id, heartbeat(token)))?.cancelRequested,
      true,
      'A heartbeat tells the worker of the cancel.',
    )
    assert.equal(
      (await store.apply(id, fail(token, { error: canceledError })))?.status,
      'FAILED',
      'The worker of a canceled job can end it.',
    )
  },

  async 'only retention, delivery and delete change an ended job'({ store }) {
    for (const end of [succeed, (job: JobRecord) => fail(job.token)]) {
      const running = await claimed(store)
      const ended = await store.apply(running.id, end(running))
      assert.ok(ended, 'The end of a running job is accepted.')
      await changesNothing(store, ended, [
        heartbeat(1),
        succeed(running),
        fail(1),
        requeue(1),
        requeue(1, { onShutdown: true }),
        cancel(),
      ])
      assertNone(await store.claim({ id: running.id, owner: 'w', leaseMs }), 'An ended job is not claimed.')
      assert.equal(
        (await store.apply(running.id, { kind: 'expire' }))?.expired,
        true,
        'Retention marks an ended job as expired.',
      )
      assertNone(await store.apply(running.id, { kind: 'expire' }), 'A job expires only once.')
      assert.equal((await store.apply(running.id, { kind: 'delete' }))?.deleted, true, 'An ended job can be deleted.')
    }
  },

  async 'only cancel and delete change a queued job'({ store }) {
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

  async 'only one of several simultaneous ends of one claim is accepted'({ store }) {
    for (let round = 0; round < 10; round++) {
      const running = await claimed(store)
      const ended = await accepted(8, (n) => store.apply(running.id, n % 2 ? succeed(running) : fail(running.token)))
      assert.equal(ended.length, 1, 'Exactly one of eight simultaneous ends is accepted.')
      assert.deepEqual(await store.get(running.id), ended[0], 'get shows the end that was accepted.')
    }
  },

  async 'a delete hides the job at once, and its worker can no longer change it'({ store, advance }) {
    const running = await claimed(store)
    const { id, token } = running
    const deleted = await store.apply(id, { kind: 'delete' })
    assert.equal(deleted?.deleted, true, 'A running job can be deleted.')
    assert.ok(deleted.token > token, 'A delete raises the token, so that the worker is fenced off.')
    assertNone(await store.get(id), 'get does not show a deleted job.')
    assert.deepEqual(await store.list({ limit: 10 }), [], 'list does not show a deleted job.')
    assert.equal(await store.count({}), 0, 'count does not count a deleted job.')
    assert.equal(await store.count({ statuses: ['STARTED'] }), 0, 'count by status does not count a deleted job.')
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
      assertNone(await store.apply(id, change), `${change.kind} does not change a deleted job.`)
    }
    await advance(leaseMs + 100)
    assertNone(
      await store.claim({ id, owner: 'w', leaseMs }),
      'A deleted job is not claimed by name, even when its lease has run out.',
    )
    assertNone(
      await store.claim({ owner: 'w', leaseMs }),
      'A deleted job is not claimed as the next one, even when its lease has run out.',
    )
    assert.deepEqual(
      await store.due('deleted', 10),
      [deleted],
      'A deleted job waits for its removal, as the delete returned it.',
    )
  },

  async 'only one of several simultaneous deletes is accepted'({ store }) {
    const { job } = await store.create(sampleJob())
    const deleted = await accepted(8, () => store.apply(job.id, { kind: 'delete' }))
    assert.equal(deleted.length, 1, 'Exactly one of eight simultaneous deletes is accepted.')
  },
} satisfies Cases<JobStoreContext>
