import assert from 'node:assert/strict'
import { jobRecordSchema } from '../core/engine/job/job.js'
import { StemworkError } from '../core/engine/errors.js'
import { type JobStoreContext, passWindow } from './job-store-context.js'
import { cancel, fullJob, heartbeat, sampleJob, succeed } from './job-samples.js'
import type { Cases } from './suite.js'

const withKey = (key: string, fields = {}) => sampleJob({ idempotency: { key, digest: 'd1' }, ...fields })

export const recordCases = {
  async 'a created job is read back field by field'({ store }) {
    const job = fullJob({ idempotency: { key: 'key "1"', digest: 'abc' } })
    const { job: returned, created } = await store.create(job)
    assert.equal(created, true)
    assert.deepEqual(returned, { ...job, createdAt: returned.createdAt })
    assert.deepEqual(await store.get(job.id), returned)
    assert.deepEqual(jobRecordSchema.parse(returned), returned)
  },

  async 'fields that a newer version wrote survive the changes of this one'({ store }) {
    const added = { addedLater: { by: 'a newer node' } }
    const { job } = await store.create({ ...sampleJob(), ...added })
    const claimed = await store.claim({ id: job.id, owner: 'w', leaseMs: 60_000 })
    assert.ok(claimed)
    await store.apply(job.id, heartbeat(claimed.token, { progress: 0.5, leaseMs: 60_000 }))
    await store.apply(job.id, succeed(claimed))
    assert.deepEqual(((await store.get(job.id)) as typeof added | undefined)?.addedLater, added.addedLater)
  },

  async "the store's clock sets createdAt"({ store, advance }) {
    const first = await store.create(sampleJob({ createdAt: 1 }))
    await advance(50)
    const second = await store.create(sampleJob({ createdAt: 1 }))
    assert.notEqual(first.job.createdAt, 1)
    assert.ok(
      second.job.createdAt >= first.job.createdAt + 40,
      `${second.job.createdAt} is not 50 ms after ${first.job.createdAt}`,
    )
  },

  async 'an unknown id is undefined and never an error'({ store }) {
    await store.create(sampleJob())
    for (const id of ['', 'unknown', 'x'.repeat(500), "' or 1=1 --", '..', '%', '__proto__', 'constructor', '🎵']) {
      assert.equal(await store.get(id), undefined)
      assert.equal(await store.claim({ id, owner: 'w', leaseMs: 1000 }), undefined)
      assert.equal(await store.apply(id, { kind: 'delete' }), undefined)
      assert.deepEqual(await store.purge({ id }), [])
    }
    assert.equal(await store.count({}), 1)
  },

  async "records handed in and out are the caller's to change"({ store }) {
    const given = fullJob()
    const original = structuredClone(given)
    const { job: returned } = await store.create(given)
    const expected = { ...original, createdAt: returned.createdAt }
    spoil(given)
    spoil(returned)
    const read = await store.get(original.id)
    assert.deepEqual(read, expected)
    spoil(read)
    const [listed] = await store.list({ limit: 1 })
    assert.deepEqual(listed, expected)
    spoil(listed)

    const claimed = await store.claim({ id: original.id, owner: 'w', leaseMs: 1000 })
    assert.ok(claimed)
    const token = claimed.token
    spoil(claimed)
    const beating = await store.apply(original.id, heartbeat(token))
    assert.ok(beating, 'the lease was changed through a record that was handed out')
    spoil(beating)
    const change = succeed(
      { id: original.id, token },
      { messages: [{ id: 'm1', url: 'https://example.com', event: 'job.succeeded' }] },
    )
    const outputs = structuredClone(change.outputs)
    const done = await store.apply(original.id, change)
    spoil(change.outputs)
    spoil(change.details)
    spoil(change.messages)
    spoil(done)
    const [due] = await store.due('deliverable', 1)
    assert.deepEqual(due, await store.get(original.id))
    spoil(due)
    const last = await store.get(original.id)
    assert.deepEqual(last?.outputs, outputs)
    assert.deepEqual(last?.details, { model: 'embedded' })
    assert.equal(last?.deliveries[0]?.id, 'm1')
    assert.deepEqual(last?.params, original.params)
  },

  async 'a known id is refused and nothing is overwritten'({ store }) {
    const job = sampleJob({ name: 'first' })
    const { job: first } = await store.create(job)
    await assert.rejects(store.create({ ...job, name: 'second' }), isAlreadyThere)
    assert.deepEqual(await store.get(job.id), first)
    await store.apply(job.id, { kind: 'delete' })
    await assert.rejects(store.create({ ...job, name: 'third' }), isAlreadyThere)
    assert.equal(await store.get(job.id), undefined)
    assert.equal(await store.count({}), 0)
  },

  async 'of simultaneous creates with one id one makes the job'({ store }) {
    const job = sampleJob()
    const outcomes = await Promise.allSettled(
      Array.from({ length: 8 }, (_, n) => store.create({ ...job, name: `n${n}` })),
    )
    assert.equal(outcomes.filter((outcome) => outcome.status === 'fulfilled').length, 1)
    assert.equal(await store.count({}), 1)
  },

  async 'the same idempotency key returns the first job, in whatever state it is'({ store }) {
    const { job: first } = await store.create(withKey('k1', { name: 'first' }))
    const second = await store.create(withKey('k1', { name: 'second', idempotency: { key: 'k1', digest: 'd2' } }))
    assert.deepEqual(second, { job: first, created: false })
    const running = await store.claim({ id: first.id, owner: 'w', leaseMs: 1000 })
    assert.ok(running)
    assert.deepEqual(await store.create(withKey('k1')), { job: running, created: false })
    const ended = await store.apply(first.id, succeed(running))
    assert.deepEqual(await store.create(withKey('k1')), { job: ended, created: false })
    assert.equal(await store.count({}), 1)
  },

  async 'a repeated create with the same id and key returns the first job'({ store }) {
    const job = withKey('k1')
    const { job: first } = await store.create(job)
    assert.deepEqual(await store.create(job), { job: first, created: false })
  },

  async 'an idempotency key belongs to one application'({ store }) {
    const pairs: [app: string, key: string][] = [
      ['a', 'b:c'],
      ['a:b', 'c'],
      ['a', 'b'],
      ['b', 'b'],
      ['', 'ab:c'],
      ['a', 'B'],
    ]
    for (const [app, key] of pairs) {
      const { created } = await store.create(withKey(key, { app }))
      assert.equal(created, true, `application "${app}", key "${key}" was taken for another`)
    }
    for (const [app, key] of pairs) assert.equal((await store.create(withKey(key, { app }))).created, false)
    assert.equal(await store.count({}), pairs.length)
  },

  async 'jobs without an idempotency key are all made'({ store }) {
    await Promise.all(Array.from({ length: 5 }, () => store.create(sampleJob())))
    assert.equal(await store.count({}), 5)
  },

  async 'of simultaneous creates with one idempotency key one makes the job'({ store }) {
    for (let round = 0; round < 5; round++) {
      const results = await Promise.all(Array.from({ length: 8 }, () => store.create(withKey(`k${round}`))))
      assert.equal(results.filter(({ created }) => created).length, 1)
      assert.equal(new Set(results.map(({ job }) => job.id)).size, 1)
    }
    assert.equal(await store.count({}), 5)
  },

  async 'deleting a job frees its idempotency key at once'({ store }) {
    const { job: first } = await store.create(withKey('k1'))
    await store.apply(first.id, { kind: 'delete' })
    const second = await store.create(withKey('k1'))
    assert.equal(second.created, true)
    await store.purge({ id: first.id })
    assert.deepEqual(await store.create(withKey('k1')), { job: second.job, created: false })
  },

  async 'an idempotency key is free again after its time'({ store, advance }) {
    const { job: first } = await store.create(withKey('k1'))
    await passWindow({ store, advance }, 'k1')
    const second = await store.create(withKey('k1'))
    assert.equal(second.created, true)
    assert.deepEqual(await store.create(withKey('k1')), { job: second.job, created: false })
    await store.apply(first.id, { kind: 'delete' })
    await store.purge({ id: first.id })
    assert.deepEqual(await store.create(withKey('k1')), { job: second.job, created: false })
  },

  async 'purging an ended job frees its idempotency key'({ store, advance }) {
    const { job } = await store.create(withKey('k1'))
    const ended = await store.apply(job.id, cancel())
    await advance(20)
    assert.deepEqual(await store.purge({ endedBefore: (ended?.completedAt ?? 0) + 1, limit: 10 }), [job.id])
    assert.equal((await store.create(withKey('k1'))).created, true)
  },

  async 'a transaction is refused by a store that has none'({ store }) {
    await assert.rejects(
      store.create(sampleJob(), { tx: {} }),
      (error) => StemworkError.is(error) && error.code === 'INVALID_OPTIONS',
    )
    assert.equal(await store.count({}), 0)
    assert.equal((await store.create(sampleJob(), { tx: undefined })).created, true)
  },
} satisfies Cases<JobStoreContext>

function isAlreadyThere(error: unknown): boolean {
  return StemworkError.is(error) && error.code === 'ALREADY_EXISTS'
}

/** Changes everything that can be reached from a value. Parts that are frozen are safe already. */
function spoil(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  for (const [key, inner] of Object.entries(value)) {
    spoil(inner)
    if (typeof inner !== 'object' || inner === null) Reflect.set(value, key, 'spoiled')
  }
  Reflect.set(value, 'spoiled', true)
}
