import assert from 'node:assert/strict'
import { jobRecordSchema } from '../../core/engine/job/job.js'
import { type JobStoreContext, passWindow } from '../job-store-context.js'
import { cancel, claim, fullJob, heartbeat, sampleJob, succeed, together, withKey } from '../job-samples.js'
import { assertFails, assertNone } from '../broken-promise.js'
import type { Cases } from '../suite.js'

export const recordCases = {
  async 'every field of a created job is read back as it was given'({ store }) {
    const job = fullJob({ idempotency: { key: 'key "1"', digest: 'abc' } })
    const { job: returned, created } = await store.create(job)
    assert.equal(created, true, 'A new job is created.')
    assert.deepEqual(
      returned,
      { ...job, createdAt: returned.createdAt },
      'create returns the record as it was given, with its own createdAt.',
    )
    assert.deepEqual(await store.get(job.id), returned, 'get shows what create returned.')
    assert.deepEqual(jobRecordSchema.parse(returned), returned, 'What create returned is a valid record.')
  },

  async 'names that mean something to JavaScript are kept in params and metadata'({ store }) {
    // At the top level, the engine drops `__proto__`, as the schemas of params and metadata do.
    const params = JSON.parse('{"constructor":1,"toString":{"__proto__":{"a":1}}}') as Record<string, unknown>
    const metadata = { constructor: 'text', toString: 'text' } as unknown as Record<string, string>
    const { job } = await store.create(sampleJob({ params, metadata }))
    await store.apply(job.id, cancel())
    const read = await store.get(job.id)
    assert.equal(JSON.stringify([read?.params, read?.metadata]), JSON.stringify([params, metadata]), 'All are kept.')
  },

  async 'fields that a newer version wrote are kept when this version changes the record'({ store }) {
    const added = { addedLater: { by: 'a newer node' } }
    const { job } = await store.create({ ...sampleJob(), ...added })
    const claimed = await claim(store, job.id)
    await store.apply(job.id, heartbeat(claimed.token, { progress: 0.5, leaseMs: 60_000 }))
    await store.apply(job.id, succeed(claimed))
    assert.deepEqual(
      ((await store.get(job.id)) as typeof added | undefined)?.addedLater,
      added.addedLater,
      'Fields that this version does not know are kept.',
    )
  },

  async "the store's clock sets createdAt"({ store, advance }) {
    const first = await store.create(sampleJob({ createdAt: 1 }))
    await advance(50)
    const second = await store.create(sampleJob({ createdAt: 1 }))
    assert.notEqual(first.job.createdAt, 1, 'The store sets createdAt by its own clock.')
    assert.ok(
      second.job.createdAt >= first.job.createdAt + 40,
      `createdAt follows the clock of the store: ${second.job.createdAt} is 50 ms after ${first.job.createdAt}.`,
    )
  },

  async 'an unknown id gives undefined, never an error'({ store }) {
    await store.create(sampleJob())
    for (const id of ['', 'unknown', 'x'.repeat(500), "' or 1=1 --", '..', '%', '__proto__', 'constructor', '🎵']) {
      assertNone(await store.get(id), `get of the unknown id ${JSON.stringify(id)} is undefined.`)
      assertNone(
        await store.claim({ id, owner: 'w', leaseMs: 1000 }),
        `A claim of the unknown id ${JSON.stringify(id)} is undefined.`,
      )
      assertNone(
        await store.apply(id, { kind: 'delete' }),
        `A change of the unknown id ${JSON.stringify(id)} is undefined.`,
      )
      assert.deepEqual(
        await store.purge({ id }),
        [],
        `A purge of the unknown id ${JSON.stringify(id)} removes nothing.`,
      )
    }
    assert.equal(await store.count({}), 1, 'The one known job is still there.')
  },

  async 'a caller may change the records that it passed or received without changing the store'({ store }) {
    const given = fullJob()
    const original = structuredClone(given)
    const { job: returned } = await store.create(given)
    const expected = { ...original, createdAt: returned.createdAt }
    spoil(given)
    spoil(returned)
    const read = await store.get(original.id)
    assert.deepEqual(
      read,
      expected,
      'What a caller changes in a record that it handed in or was given does not reach the store.',
    )
    spoil(read)
    const [listed] = await store.list({ limit: 1 })
    assert.deepEqual(listed, expected, 'What a caller changes in a record that get returned does not reach the store.')
    spoil(listed)

    const claimed = await claim(store, original.id)
    const { token } = claimed
    spoil(claimed)
    const beating = await store.apply(original.id, heartbeat(token))
    assert.ok(beating, 'What a caller changes in a record that claim returned does not reach the store.')
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
    const [due] = await store.deliverable({ limit: 1, perApp: 1, exceptApps: [] })
    assert.deepEqual(due, await store.get(original.id), 'deliverable and get show the same record.')
    spoil(due)
    const last = await store.get(original.id)
    assert.deepEqual(
      last?.outputs,
      outputs,
      'What a caller changes in outputs that it handed in does not reach the store.',
    )
    assert.deepEqual(
      last?.details,
      { model: 'embedded' },
      'What a caller changes in details that it handed in does not reach the store.',
    )
    assert.equal(
      last?.deliveries[0]?.id,
      'm1',
      'What a caller changes in messages that it handed in does not reach the store.',
    )
    assert.deepEqual(
      last?.params,
      original.params,
      'What a caller changes in a record that due returned does not reach the store.',
    )
  },

  async 'a create with an existing id is refused and overwrites nothing'({ store }) {
    const job = sampleJob({ name: 'first' })
    const { job: first } = await store.create(job)
    await assertFails(
      store.create({ ...job, name: 'second' }),
      'ALREADY_EXISTS',
      'A create with an existing id fails with ALREADY_EXISTS.',
    )
    assert.deepEqual(await store.get(job.id), first, 'A refused create leaves the job as it is.')
    await store.apply(job.id, { kind: 'delete' })
    await assertFails(
      store.create({ ...job, name: 'third' }),
      'ALREADY_EXISTS',
      'A create with the id of a deleted job fails with ALREADY_EXISTS until that job is purged.',
    )
    assertNone(await store.get(job.id), 'A deleted job stays hidden.')
    assert.equal(await store.count({}), 0, 'A deleted job is not counted.')
  },

  async 'only one of several simultaneous creates with the same id creates the job'({ store }) {
    const job = sampleJob()
    const outcomes = await Promise.allSettled(
      Array.from({ length: 8 }, (_, n) => store.create({ ...job, name: `n${n}` })),
    )
    assert.equal(
      outcomes.filter((outcome) => outcome.status === 'fulfilled').length,
      1,
      'Exactly one of eight simultaneous creates with one id creates the job.',
    )
    assert.equal(await store.count({}), 1, 'Only one job was created.')
  },

  async 'the same idempotency key returns the first job, whatever its state'({ store }) {
    const { job: first } = await store.create(withKey('k1', { name: 'first' }))
    const second = await store.create(withKey('k1', { name: 'second', idempotency: { key: 'k1', digest: 'd2' } }))
    assert.deepEqual(
      second,
      { job: first, created: false },
      'A repeated idempotency key returns the first job, whatever the digest.',
    )
    const running = await claim(store, first.id)
    assert.deepEqual(
      await store.create(withKey('k1')),
      { job: running, created: false },
      'A repeated idempotency key returns the job while it runs.',
    )
    const ended = await store.apply(first.id, succeed(running))
    assert.deepEqual(
      await store.create(withKey('k1')),
      { job: ended, created: false },
      'A repeated idempotency key returns the job after it has ended.',
    )
    assert.equal(await store.count({}), 1, 'Only one job was created.')
  },

  async 'a repeated create with the same id and key returns the first job'({ store }) {
    const job = withKey('k1')
    const { job: first } = await store.create(job)
    assert.deepEqual(
      await store.create(job),
      { job: first, created: false },
      'A repeated create with the same id and key returns the first job.',
    )
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
      assert.equal(
        created,
        true,
        `The application ${JSON.stringify(app)} with the key ${JSON.stringify(key)} is not confused with another pair.`,
      )
    }
    for (const [app, key] of pairs)
      assert.equal(
        (await store.create(withKey(key, { app }))).created,
        false,
        `The key ${key} of the application ${app} finds its job.`,
      )
    assert.equal(await store.count({}), pairs.length, 'Each pair of application and key has a job of its own.')
  },

  async 'jobs without an idempotency key are all created'({ store }) {
    await together(5, () => store.create(sampleJob()))
    assert.equal(await store.count({}), 5, 'Jobs without an idempotency key are all created.')
  },

  async 'only one of several simultaneous creates with the same idempotency key creates the job'({ store }) {
    for (let round = 0; round < 5; round++) {
      const results = await together(8, () => store.create(withKey(`k${round}`)))
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
    assert.equal(await store.count({}), 5, 'Each key has one job.')
  },

  async 'deleting a job frees its idempotency key at once'({ store }) {
    const { job: first } = await store.create(withKey('k1'))
    await store.apply(first.id, { kind: 'delete' })
    const second = await store.create(withKey('k1'))
    assert.equal(second.created, true, 'The key of a deleted job is free at once.')
    await store.purge({ id: first.id })
    assert.deepEqual(
      await store.create(withKey('k1')),
      { job: second.job, created: false },
      'Purging the deleted job does not take the key from the new one.',
    )
  },

  async 'an idempotency key is free again after its window'({ store, advance }) {
    const { job: first } = await store.create(withKey('k1'))
    await passWindow({ store, advance }, 'k1')
    const second = await store.create(withKey('k1'))
    assert.equal(second.created, true, 'A key whose window has passed is free.')
    assert.deepEqual(
      await store.create(withKey('k1')),
      { job: second.job, created: false },
      'The key finds the new job.',
    )
    await store.apply(first.id, { kind: 'delete' })
    await store.purge({ id: first.id })
    assert.deepEqual(
      await store.create(withKey('k1')),
      { job: second.job, created: false },
      'Deleting and purging the old job does not take the key from the new one.',
    )
  },

  async 'purging an ended job frees its idempotency key'({ store, advance }) {
    const { job } = await store.create(withKey('k1'))
    const ended = await store.apply(job.id, cancel())
    await advance(20)
    assert.deepEqual(
      await store.purge({ endedBefore: (ended?.completedAt ?? 0) + 1, limit: 10 }),
      [job.id],
      'A purge by age removes the ended job.',
    )
    assert.equal((await store.create(withKey('k1'))).created, true, 'The key of a purged job is free.')
  },

  async 'a store without transactions refuses one'({ store }) {
    await assertFails(
      store.create(sampleJob(), { tx: {} }),
      'INVALID_OPTIONS',
      'A store without transactions fails with INVALID_OPTIONS for `tx`.',
    )
    assert.equal(await store.count({}), 0, 'A refused create leaves nothing behind.')
    assert.equal(
      (await store.create(sampleJob(), { tx: undefined })).created,
      true,
      'A create with `tx: undefined` is accepted.',
    )
  },
} satisfies Cases<JobStoreContext>

/** Changes everything reachable from a value. Frozen parts cannot be changed. */
function spoil(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  for (const [key, inner] of Object.entries(value)) {
    spoil(inner)
    if (typeof inner !== 'object' || inner === null) Reflect.set(value, key, 'spoiled')
  }
  Reflect.set(value, 'spoiled', true)
}
