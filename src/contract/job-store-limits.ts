import assert from 'node:assert/strict'
import { StemworkError } from '../core/engine/errors.js'
import { type JobStoreContext, passWindow } from './job-store-context.js'
import { cancel, fail, requeue, sampleJob, succeed } from './job-samples.js'
import type { Cases } from './suite.js'

const withKey = (key: string, fields = {}) => sampleJob({ idempotency: { key, digest: 'd' }, ...fields })

export const limitCases = {
  async 'of 200 simultaneous creates as many are made as the limit allows'({ store }) {
    const outcomes = await Promise.allSettled(
      Array.from({ length: 200 }, (_, n) =>
        store.create(n % 4 === 0 ? withKey(`k${n}`) : sampleJob(), { maxQueued: 10 }),
      ),
    )
    const refusals = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []))
    assert.equal(await store.count({ statuses: ['QUEUED'] }), 10)
    assert.equal(refusals.length, 190)
    for (const refusal of refusals) if (!isFull(refusal)) throw refusal
  },

  async 'a limit counts the jobs of its application alone'({ store }) {
    await store.create(sampleJob({ app: 'a' }), { maxQueued: 1 })
    assert.equal((await store.create(sampleJob({ app: 'b' }), { maxQueued: 1 })).created, true)
    await assert.rejects(store.create(sampleJob({ app: 'a' }), { maxQueued: 1 }), isFull)
    await assert.rejects(store.create(withKey('k', { app: 'a' }), { maxQueued: 1 }), isFull)
    assert.equal((await store.create(sampleJob({ app: 'a' }), { maxQueued: 2 })).created, true)
    assert.equal((await store.create(sampleJob({ app: 'a' }), { maxQueued: Infinity })).created, true)
    assert.equal((await store.create(sampleJob({ app: 'a' }))).created, true)
  },

  async 'a limit counts queued jobs alone: one that starts, ends or is deleted makes room, a requeued one takes it'({
    store,
  }) {
    const create = () => store.create(sampleJob(), { maxQueued: 3 })
    const [first, second, third] = await Promise.all([create(), create(), create()])
    const isThereRoom = async () => {
      try {
        const { job } = await store.create(sampleJob(), { maxQueued: 3 })
        await store.apply(job.id, { kind: 'delete' })
        return true
      } catch (error) {
        if (isFull(error)) return false
        throw error
      }
    }
    assert.equal(await isThereRoom(), false)
    const running = await store.claim({ id: first.job.id, owner: 'w', leaseMs: 60_000 })
    assert.equal(await isThereRoom(), true)
    await store.apply(first.job.id, requeue(running?.token ?? 0))
    assert.equal(await isThereRoom(), false)
    await store.apply(second.job.id, cancel())
    assert.equal(await isThereRoom(), true)
    await store.create(sampleJob(), { maxQueued: 3 })
    assert.equal(await isThereRoom(), false)
    await store.apply(third.job.id, { kind: 'delete' })
    assert.equal(await isThereRoom(), true)
  },

  async 'a repeated idempotency key returns its job also when the limit is reached'({ store, advance }) {
    const { job } = await store.create(withKey('k1'), { maxQueued: 1 })
    assert.deepEqual(await store.create(withKey('k1'), { maxQueued: 1 }), { job, created: false })
    await assert.rejects(store.create(withKey('k2'), { maxQueued: 1 }), isFull)
    await passWindow({ store, advance }, 'k1')
    await assert.rejects(store.create(withKey('k1'), { maxQueued: 1 }), isFull)
  },

  async 'of simultaneous creates with one key none is refused for the job that another made'({ store }) {
    for (let round = 1; round <= 5; round++) {
      const results = await Promise.all(
        Array.from({ length: 8 }, () => store.create(withKey(`k${round}`), { maxQueued: round })),
      )
      assert.equal(results.filter(({ created }) => created).length, 1)
      assert.equal(new Set(results.map(({ job }) => job.id)).size, 1)
    }
  },

  async 'a failed job is queued again as if it were new, and no other is'({ store, advance }) {
    const { job } = await store.create(sampleJob({ idempotency: { key: 'k', digest: 'd' } }))
    assert.equal(await store.apply(job.id, { kind: 'retry' }), undefined)
    const running = await store.claim({ id: job.id, owner: 'w', leaseMs: 60_000 })
    assert.equal(await store.apply(job.id, { kind: 'retry' }), undefined)
    const failed = await store.apply(job.id, fail(running?.token ?? 0))
    assert.deepEqual([failed?.status, failed?.attempts, failed?.retries], ['FAILED', 1, 0])
    await advance(10)
    const queued = await store.apply(job.id, { kind: 'retry' })
    assert.ok(queued && queued.notBefore >= (failed?.completedAt ?? Infinity))
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
    )
    assert.deepEqual(await store.get(job.id), queued)
    assert.equal(await store.count({ app: job.app, statuses: ['QUEUED'] }), 1)
    assert.equal((await store.findByIdempotencyKey('app-1', 'k'))?.id, job.id)
    const again = await store.claim({ owner: 'w', leaseMs: 60_000 })
    assert.deepEqual([again?.id, again?.token, again?.attempts], [job.id, (running?.token ?? 0) + 1, 1])
    assert.deepEqual(await store.purge({ endedBefore: Number.MAX_SAFE_INTEGER, limit: 10 }), [])
    const done = again && (await store.apply(job.id, succeed(again)))
    assert.deepEqual([done?.status, await store.apply(job.id, { kind: 'retry' })], ['SUCCEEDED', undefined])
    assert.equal(await store.apply('unknown', { kind: 'retry' }), undefined)
  },

  async 'a failed job whose deadline has passed is not queued again'({ store, advance }) {
    const { job: clock } = await store.create(sampleJob())
    const { job } = await store.create(sampleJob({ deadline: clock.createdAt + 1000 }))
    await store.apply(job.id, cancel())
    await advance(1100)
    assert.equal(await store.apply(job.id, { kind: 'retry' }), undefined)
  },

  async 'of simultaneous retries as many are queued as the limit allows'({ store }) {
    const jobs = await Promise.all(Array.from({ length: 20 }, async () => (await store.create(sampleJob())).job))
    for (const { id } of jobs) await store.apply(id, cancel())
    const outcomes = await Promise.allSettled(
      jobs.map(({ id }, n) =>
        n % 4 === 0 ? store.create(sampleJob(), { maxQueued: 6 }) : store.apply(id, { kind: 'retry', maxQueued: 6 }),
      ),
    )
    assert.equal(await store.count({ app: 'app-1', statuses: ['QUEUED'] }), 6)
    const refusals = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []))
    assert.equal(refusals.length, 14)
    for (const refusal of refusals) if (!isFull(refusal)) throw refusal
  },

  async 'a job is found by its idempotency key as long as a create would return it'({ store, advance }) {
    assert.equal(await store.findByIdempotencyKey('app-1', 'k1'), undefined)
    const { job } = await store.create(withKey('k1'))
    assert.deepEqual(await store.findByIdempotencyKey('app-1', 'k1'), job)
    assert.equal(await store.findByIdempotencyKey('app-2', 'k1'), undefined)
    assert.equal(await store.findByIdempotencyKey('app-1', 'k2'), undefined)
    const ended = await store.apply(job.id, cancel())
    assert.deepEqual(await store.findByIdempotencyKey('app-1', 'k1'), ended)
    await passWindow({ store, advance }, 'k1')
    assert.equal(await store.findByIdempotencyKey('app-1', 'k1'), undefined)
    const next = await store.create(withKey('k1'))
    assert.deepEqual(await store.findByIdempotencyKey('app-1', 'k1'), next.job)
    await store.apply(next.job.id, { kind: 'delete' })
    assert.equal(await store.findByIdempotencyKey('app-1', 'k1'), undefined)
  },
} satisfies Cases<JobStoreContext>

function isFull(error: unknown): boolean {
  return StemworkError.is(error) && error.code === 'QUEUE_FULL' && error.retryable
}
