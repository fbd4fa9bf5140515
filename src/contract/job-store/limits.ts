import assert from 'node:assert/strict'
import { StemworkError } from '../../core/engine/errors.js'
import { type JobStoreContext, passWindow } from '../job-store-context.js'
import { cancel, fail, requeue, sampleJob, succeed, together, withKey } from '../job-samples.js'
import { assertFails, assertNone } from '../broken-promise.js'
import type { Cases } from '../suite.js'

export const limitCases = {
  async '200 simultaneous creates make exactly as many jobs as the limit allows'({ store }) {
    const outcomes = await Promise.allSettled(
      Array.from({ length: 200 }, (_, n) =>
        store.create(n % 4 === 0 ? withKey(`k${n}`) : sampleJob(), { maxQueued: 10 }),
      ),
    )
    const refusals = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []))
    assert.equal(await store.count({ statuses: ['QUEUED'] }), 10, 'Ten jobs are queued, as many as maxQueued allows.')
    assert.equal(refusals.length, 190, 'All creates beyond maxQueued are refused.')
    for (const refusal of refusals) if (!isFull(refusal)) throw refusal
  },

  async 'a limit counts only the jobs of its application'({ store }) {
    await store.create(sampleJob({ app: 'a' }), { maxQueued: 1 })
    assert.equal(
      (await store.create(sampleJob({ app: 'b' }), { maxQueued: 1 })).created,
      true,
      'Jobs of another application do not count against maxQueued.',
    )
    await assertFails(
      store.create(sampleJob({ app: 'a' }), { maxQueued: 1 }),
      'QUEUE_FULL',
      'A create beyond maxQueued fails with QUEUE_FULL.',
    )
    await assertFails(
      store.create(withKey('k', { app: 'a' }), { maxQueued: 1 }),
      'QUEUE_FULL',
      'A create with a new idempotency key beyond maxQueued fails with QUEUE_FULL.',
    )
    assert.equal(
      (await store.create(sampleJob({ app: 'a' }), { maxQueued: 2 })).created,
      true,
      'A create with a higher maxQueued is accepted.',
    )
    assert.equal(
      (await store.create(sampleJob({ app: 'a' }), { maxQueued: Infinity })).created,
      true,
      'A create with maxQueued Infinity is accepted.',
    )
    assert.equal((await store.create(sampleJob({ app: 'a' }))).created, true, 'A create without maxQueued is accepted.')
  },

  async 'a limit counts only queued jobs: one that starts, ends or is deleted makes room; a requeued one takes it'({
    store,
  }) {
    const create = () => store.create(sampleJob(), { maxQueued: 3 })
    const [first, second, third] = await Promise.all([create(), create(), create()])
    const hasRoom = async () => {
      try {
        const { job } = await store.create(sampleJob(), { maxQueued: 3 })
        await store.apply(job.id, { kind: 'delete' })
        return true
      } catch (error) {
        if (isFull(error)) return false
        throw error
      }
    }
    assert.equal(await hasRoom(), false, 'With three queued jobs a maxQueued of 3 leaves no room.')
    const running = await store.claim({ id: first.job.id, owner: 'w', leaseMs: 60_000 })
    assert.equal(await hasRoom(), true, 'A job that starts makes room.')
    await store.apply(first.job.id, requeue(running?.token ?? 0))
    assert.equal(await hasRoom(), false, 'A job that is requeued takes the room again.')
    await store.apply(second.job.id, cancel())
    assert.equal(await hasRoom(), true, 'A job that is canceled makes room.')
    await store.create(sampleJob(), { maxQueued: 3 })
    assert.equal(await hasRoom(), false, 'A new job takes that room.')
    await store.apply(third.job.id, { kind: 'delete' })
    assert.equal(await hasRoom(), true, 'A job that is deleted makes room.')
  },

  async 'a repeated idempotency key returns its job even if the limit is reached'({ store, advance }) {
    const { job } = await store.create(withKey('k1'), { maxQueued: 1 })
    assert.deepEqual(
      await store.create(withKey('k1'), { maxQueued: 1 }),
      { job, created: false },
      'A repeated idempotency key returns its job, although the queue is full.',
    )
    await assertFails(
      store.create(withKey('k2'), { maxQueued: 1 }),
      'QUEUE_FULL',
      'A new idempotency key fails with QUEUE_FULL.',
    )
    await passWindow({ store, advance }, 'k1')
    await assertFails(
      store.create(withKey('k1'), { maxQueued: 1 }),
      'QUEUE_FULL',
      'An idempotency key whose window has passed fails with QUEUE_FULL, as a new one does.',
    )
  },

  async 'simultaneous creates with one idempotency key count once against the limit'({ store }) {
    for (let round = 1; round <= 5; round++) {
      const results = await together(8, () => store.create(withKey(`k${round}`), { maxQueued: round }))
      assert.equal(
        results.filter(({ created }) => created).length,
        1,
        'Exactly one of eight simultaneous creates with one key creates the job.',
      )
      assert.equal(
        new Set(results.map(({ job }) => job.id)).size,
        1,
        'Simultaneous creates with one key all return the same job.',
      )
    }
  },

  // oxlint-disable-next-line complexity -- no branches: one scenario, it counts `?.`
  async 'a failed job can be queued again as if it were new; a job in any other state cannot'({ store, advance }) {
    const { job } = await store.create(withKey('k'))
    const withoutRoom = { kind: 'retry', maxQueued: 1, quota: { jobs: 0 } } as const
    assertNone(await store.apply(job.id, withoutRoom), 'A queued job cannot be retried, room or not.')
    const running = await store.claim({ id: job.id, owner: 'w', leaseMs: 60_000 })
    assertNone(await store.apply(job.id, { kind: 'retry' }), 'A running job cannot be retried.')
    const failed = await store.apply(job.id, fail(running?.token ?? 0))
    assert.deepEqual(
      [failed?.status, failed?.attempts, failed?.retries],
      ['FAILED', 1, 0],
      'The job has failed at its first attempt.',
    )
    await advance(10)
    const queued = await store.apply(job.id, { kind: 'retry' })
    assert.ok(
      queued && (queued.dueAt ?? 0) >= (failed?.completedAt ?? Infinity),
      'A retried job starts waiting at the time of the retry.',
    )
    assert.deepEqual(
      [
        queued.status,
        queued.attempts,
        queued.error,
        queued.completedAt,
        queued.expiresAt,
        queued.retries,
        queued.lease,
      ],
      ['QUEUED', 0, null, null, null, 1, null],
      'A retried job is QUEUED as if it were new, and its retries are counted.',
    )
    assert.deepEqual(await store.get(job.id), queued, 'get shows what the retry returned.')
    assert.equal(await store.count({ app: job.app, statuses: ['QUEUED'] }), 1, 'A retried job counts as queued.')
    assert.equal(
      (await store.findByIdempotencyKey('app-1', 'k'))?.id,
      job.id,
      'A retried job keeps its idempotency key.',
    )
    const again = await store.claim({ owner: 'w', leaseMs: 60_000 })
    assert.deepEqual(
      [again?.id, again?.token, again?.attempts],
      [job.id, (running?.token ?? 0) + 1, 1],
      'A retried job is claimed with the next token, and its attempts count from 1.',
    )
    assert.deepEqual(
      await store.purge({ endedBefore: Number.MAX_SAFE_INTEGER, limit: 10 }),
      [],
      'A retried job no longer counts as ended.',
    )
    const done = again && (await store.apply(job.id, succeed(again)))
    assert.deepEqual(
      [done?.status, await store.apply(job.id, { kind: 'retry' })],
      ['SUCCEEDED', undefined],
      'A job that succeeded cannot be retried.',
    )
    assertNone(await store.apply('unknown', { kind: 'retry' }), 'An unknown job cannot be retried.')
  },

  async 'a failed job whose deadline has passed is not queued again'({ store, advance }) {
    const { job: clock } = await store.create(sampleJob())
    const { job } = await store.create(sampleJob({ deadline: clock.createdAt + 1000 }))
    await store.apply(job.id, cancel())
    await advance(1100)
    assertNone(await store.apply(job.id, { kind: 'retry' }), 'A job whose deadline has passed cannot be retried.')
  },

  async 'simultaneous retries queue exactly as many jobs as the limit allows'({ store }) {
    const jobs = await together(20, async () => (await store.create(sampleJob())).job)
    for (const { id } of jobs) await store.apply(id, cancel())
    const outcomes = await Promise.allSettled(
      jobs.map(({ id }, n) =>
        n % 4 === 0 ? store.create(sampleJob(), { maxQueued: 6 }) : store.apply(id, { kind: 'retry', maxQueued: 6 }),
      ),
    )
    assert.equal(
      await store.count({ app: 'app-1', statuses: ['QUEUED'] }),
      6,
      'Six jobs are queued, as many as maxQueued allows.',
    )
    const refusals = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []))
    assert.equal(refusals.length, 14, 'All retries and creates beyond maxQueued are refused.')
    for (const refusal of refusals) if (!isFull(refusal)) throw refusal
  },

  async 'a job is found by its idempotency key for as long as a create would return it'({ store, advance }) {
    assertNone(await store.findByIdempotencyKey('app-1', 'k1'), 'A key that was not used yet belongs to no job.')
    const { job } = await store.create(withKey('k1'))
    assert.deepEqual(await store.findByIdempotencyKey('app-1', 'k1'), job, 'A used key finds its job.')
    assertNone(await store.findByIdempotencyKey('app-2', 'k1'), 'A key finds no job of another application.')
    assertNone(await store.findByIdempotencyKey('app-1', 'k2'), 'A different key finds no job.')
    const ended = await store.apply(job.id, cancel())
    assert.deepEqual(await store.findByIdempotencyKey('app-1', 'k1'), ended, 'A key finds its job as it is now.')
    await passWindow({ store, advance }, 'k1')
    assertNone(await store.findByIdempotencyKey('app-1', 'k1'), 'A key whose window has passed finds no job.')
    const next = await store.create(withKey('k1'))
    assert.deepEqual(
      await store.findByIdempotencyKey('app-1', 'k1'),
      next.job,
      'A key that is used again finds the new job.',
    )
    await store.apply(next.job.id, { kind: 'delete' })
    assertNone(await store.findByIdempotencyKey('app-1', 'k1'), 'The key of a deleted job finds no job.')
  },
} satisfies Cases<JobStoreContext>

function isFull(error: unknown): boolean {
  return StemworkError.is(error) && error.code === 'QUEUE_FULL' && error.retryable
}
