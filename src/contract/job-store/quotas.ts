import assert from 'node:assert/strict'
import { StemworkError } from '../../core/engine/errors.js'
import type { Quota } from '../../core/engine/job/quota.js'
import type { JobStore } from '../../core/engine/ports/job-store.js'
import { cancel, claimed, fail, sampleJob, succeed, together, withKey } from '../job-samples.js'
import type { JobStoreContext } from '../job-store-context.js'
import { assertFails, assertNone } from '../broken-promise.js'
import type { Cases } from '../suite.js'

const worker = { owner: 'worker', leaseMs: 60_000 }

export const quotaCases = {
  async 'simultaneous creates and retries are accepted up to the quota of the day, and each accepted one is counted'({
    store,
  }) {
    const { job: ended } = await store.create(sampleJob(), { quota: { jobs: 100 } })
    await store.apply(ended.id, cancel())
    const quota = { jobs: 7 }
    const outcomes = await Promise.allSettled([
      ...Array.from({ length: 20 }, (_, n) => store.create(n % 2 ? withKey(`k${n}`) : sampleJob(), { quota })),
      store.apply(ended.id, { kind: 'retry', quota }),
    ])
    const refusals = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []))
    assert.equal(refusals.length, 15, 'All creates and retries beyond the quota are refused.')
    for (const refusal of refusals) if (!isExceeded(refusal, 'jobs')) throw refusal
    assert.equal(
      (await store.usage('app-1')).jobs,
      7,
      'As many jobs are counted as the quota allows, including the one that has ended.',
    )
    assert.equal(
      (await store.create(sampleJob({ app: 'other' }), { quota })).created,
      true,
      'Jobs of another application do not count against the quota.',
    )
    assert.equal((await store.create(sampleJob())).created, true, 'A create without a quota is accepted.')
    assert.deepEqual(
      await store.usage('app-1'),
      { jobs: 7, audioSeconds: 0, bytes: 0 },
      'A create without a quota is not counted.',
    )
    assert.deepEqual(
      await store.usage('unknown'),
      { jobs: 0, audioSeconds: 0, bytes: 0 },
      'An unknown application has used nothing.',
    )
  },

  async 'a repeated idempotency key counts once, and returns its job even if the quota is used up'({ store }) {
    const { job } = await store.create(withKey('k1'), { quota: { jobs: 1 } })
    assert.deepEqual(
      await store.create(withKey('k1'), { quota: { jobs: 1 } }),
      { job, created: false },
      'A repeated idempotency key returns its job, although the quota is used up.',
    )
    assert.equal((await store.usage('app-1')).jobs, 1, 'A repeated idempotency key is not counted again.')
  },

  async 'audio and bytes are counted once, when a job ends, and further jobs are refused once the limit is reached'({
    store,
  }) {
    const run = async (usage: { audioSeconds?: number; bytes?: number }, fails = false) => {
      const running = await claimed(store)
      const end = fails ? fail(running.token, { usage }) : succeed(running, { usage })
      assert.ok(await store.apply(running.id, end), 'The end of a running job is accepted.')
      assertNone(await store.apply(running.id, end), 'The same end is not accepted twice.')
    }
    await run({ audioSeconds: 100.5, bytes: 1000 })
    await run({ bytes: 500 }, true)
    assert.deepEqual(
      await store.usage('app-1'),
      { jobs: 0, audioSeconds: 100.5, bytes: 1500 },
      'Audio and bytes are counted once for each end, failed jobs too.',
    )
    await refused(store, { audioMinutes: 1 }, 'audioMinutes')
    await refused(store, { bytes: 1500 }, 'bytes')
    await store.create(sampleJob(), { quota: { audioMinutes: 2, bytes: 1501, jobs: 1 } })
    await refused(store, { jobs: 1 }, 'jobs')
  },

  async 'a refusal says when the quota is renewed: at the next midnight UTC'({ store }) {
    const { job } = await store.create(sampleJob(), { quota: { jobs: 1 } })
    const error = await refused(store, { jobs: 1 }, 'jobs')
    const resetsAt = Date.parse(String(error.details.resetsAt))
    assert.ok(
      resetsAt > job.createdAt && resetsAt <= job.createdAt + 24 * 3_600_000,
      'The quota is renewed within the next 24 hours.',
    )
    assert.equal(resetsAt % (24 * 3_600_000), 0, 'The quota is renewed at midnight UTC.')
    assert.ok(
      error.message.includes(new Date(resetsAt).toISOString()),
      "The refusal's text names the time at which the quota is renewed.",
    )
  },

  async 'jobs that are created together are either all created or none is'({ store }) {
    const many = (count: number) => Array.from({ length: count }, (_, n) => sampleJob({ name: `n${n}` }))
    assert.deepEqual(await store.createAll([]), [], 'Creating no jobs returns none.')
    const jobs = await store.createAll(many(5), { maxQueued: 5, quota: { jobs: 9 } })
    assert.ok(jobs, 'Jobs that are created without a document are returned.')
    assert.deepEqual(
      jobs.map(({ name }) => name),
      ['n0', 'n1', 'n2', 'n3', 'n4'],
      'Jobs that are created together are returned in their order.',
    )
    for (const job of jobs)
      assert.deepEqual(await store.get(job.id), job, 'Each of the jobs created together is stored.')
    await assertFails(
      store.createAll(many(2), { maxQueued: 6 }),
      'QUEUE_FULL',
      'Jobs beyond maxQueued are refused together, with QUEUE_FULL.',
    )
    await assertFails(
      store.createAll(many(5), { quota: { jobs: 9 } }),
      'QUOTA_EXCEEDED',
      'Jobs beyond the quota are refused together, with QUOTA_EXCEEDED.',
    )
    const [first] = jobs
    await assertFails(
      store.createAll([sampleJob(), { ...sampleJob(), id: first?.id ?? '' }]),
      'ALREADY_EXISTS',
      'If one of the jobs has an existing id, all are refused, with ALREADY_EXISTS.',
    )
    assert.equal(await store.count({ app: 'app-1' }), 5, 'Refused jobs leave nothing behind.')
    assert.equal((await store.usage('app-1')).jobs, 5, 'Refused jobs are not counted.')
    for (let n = 0; n < 5; n++)
      assert.ok(await store.claim(worker), 'Each of the jobs created together can be claimed.')
    assertNone(await store.claim(worker), 'No other job was created.')
  },

  async 'jobs and their document are written together, or neither is'({ store }) {
    const many = (count: number) => Array.from({ length: count }, () => sampleJob())
    const document = (value: string, version: number) => ({ kind: 'k', key: 'd', value, ttlMs: 60_000, version })
    const stored = async () => (await store.documents.get('k', 'd'))?.value
    const calls = await together(3, (n) => store.createAll(many(2), { document: document(`d${n}`, 0) }))
    const made = calls.flatMap((jobs, n) => (jobs ? [n] : []))
    assert.equal(made.length, 1, 'Only one of several simultaneous calls with the same document version succeeds.')
    assert.equal(await stored(), `d${made[0]}`, 'The document is that of the call whose jobs were created.')
    assert.equal(await store.count({ app: 'app-1' }), 2, 'The other calls create no job.')
    assert.equal((await store.createAll(many(3), { document: document('next', 1) }))?.length, 3, 'All are created.')
    assert.equal((await store.documents.get('k', 'd'))?.version, 2, "The document's version rises by one.")
    await assertFails(
      store.createAll(many(2), { maxQueued: 6, document: document('full', 2) }),
      'QUEUE_FULL',
      'Jobs beyond maxQueued are refused even with a document.',
    )
    const [known] = await store.list({ limit: 1 })
    await assertFails(
      store.createAll([sampleJob(), sampleJob({ id: known?.id })], { document: document('known', 2) }),
      'ALREADY_EXISTS',
      'If one of the jobs has an existing id, all are refused even with a document.',
    )
    const limits = { maxQueued: 5, quota: { jobs: 1 } }
    const refused = await store.createAll(many(2), { ...limits, document: document('old', 1) })
    assertNone(refused, 'A version that the document does not have is told before there being no room.')
    assert.equal(await stored(), 'next', 'If no job was created, the document is not written.')
    assert.equal(await store.count({ app: 'app-1' }), 5, 'If the document was not written, no job is created.')
    assert.equal((await store.usage('app-1')).jobs, 0, 'Jobs that were not created are not counted.')
  },
} satisfies Cases<JobStoreContext>

async function refused(store: JobStore, quota: Quota, what: keyof Quota): Promise<StemworkError> {
  try {
    await store.create(sampleJob(), { quota })
  } catch (error) {
    if (isExceeded(error, what)) return error
    throw error
  }
  throw new assert.AssertionError({ message: `A job was created beyond the quota of ${what}.` })
}

function isExceeded(error: unknown, what: keyof Quota): error is StemworkError {
  return StemworkError.is(error) && error.code === 'QUOTA_EXCEEDED' && error.details.quota === what
}
