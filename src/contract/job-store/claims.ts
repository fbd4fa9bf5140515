import assert from 'node:assert/strict'
import { leaseMs, type JobStoreContext } from '../job-store-context.js'
import type { JobRecord } from '../../core/engine/job/job.js'
import { accepted, cancel, creator, ids, names, requeue, sampleJob, together } from '../job-samples.js'
import { assertFails, assertNone } from '../broken-promise.js'
import type { Cases } from '../suite.js'

const worker = { owner: 'worker', leaseMs }

export const claimCases = {
  async 'only one of eight simultaneous claims of one job wins'({ store }) {
    for (let round = 0; round < 20; round++) {
      const { job } = await store.create(sampleJob())
      const winners = await accepted(8, (n) => store.claim({ id: job.id, owner: `worker-${n}`, leaseMs }))
      assert.equal(winners.length, 1, 'Exactly one of eight simultaneous claims of one job is granted.')
      const [winner] = winners
      assert.deepEqual(
        [winner?.token, winner?.attempts],
        [1, 1],
        'The first claim of a job has token 1 and counts one attempt.',
      )
      assert.deepEqual(await store.get(job.id), winner, 'get shows the claim that was granted.')
    }
  },

  async 'simultaneous claims of the next job grant each job exactly once'({ store }) {
    for (let n = 0; n < 12; n++) await store.create(sampleJob())
    const got = await accepted(20, () => store.claim(worker))
    assert.equal(got.length, 12, 'Twenty simultaneous claims of twelve jobs get twelve.')
    assert.equal(new Set(ids(got)).size, 12, 'No job is granted to two simultaneous claims.')
    assertNone(await store.claim(worker), 'No job is left to claim.')
  },

  async 'the job that has waited longest is claimed first'({ store, advance }) {
    const made: string[] = []
    for (let n = 0; n < 3; n++) {
      made.push((await store.create(sampleJob())).job.id)
      await advance(20)
    }
    const first = await store.claim(worker)
    assert.ok(first, 'A claim is granted while a job waits.')
    assert.equal(first.id, made[0], 'The job that has waited longest is claimed first.')
    // A requeued job goes to the back of the queue, behind the jobs that already wait.
    await store.apply(first.id, requeue(1))
    assert.equal(
      (await store.claim(worker))?.id,
      made[1],
      'A requeued job goes to the back of the queue: the second of the others is claimed before it.',
    )
    assert.equal(
      (await store.claim(worker))?.id,
      made[2],
      'A requeued job goes to the back of the queue: the third of the others is claimed before it.',
    )
    assert.equal((await store.claim(worker))?.id, made[0], 'A requeued job is claimed again.')
  },

  async 'applications take turns, least recently served first; within one, the longest wait comes first'({
    store,
    advance,
  }) {
    const create = namedCreator({ store, advance })
    for (const name of ['a1', 'a2', 'a3', 'b1', 'b2', 'c1']) await create(name)
    assert.deepEqual(
      await names(store, 4),
      ['a1', 'b1', 'c1', 'a2'],
      'Applications take turns in the order in which they came.',
    )
    // New jobs of known and of new applications: one that was never served comes first, then b (served before c and a).
    for (const name of ['c2', 'd1', 'd2', 'a4']) await create(name)
    assert.deepEqual(
      await names(store, 9),
      ['d1', 'b2', 'c2', 'a3', 'd2', 'a4'],
      'An application that was never served comes first, then the one served longest ago.',
    )
  },

  async 'applications that the claim excludes are passed over, even with lapsed leases, and keep their turn'({
    store,
    advance,
  }) {
    const create = namedCreator({ store, advance })
    for (const name of ['a1', 'a2', 'b1', 'b2']) await create(name)
    const next = async (...exceptApps: string[]) => (await store.claim({ ...worker, exceptApps }))?.name
    assert.equal(await next('a'), 'b1', 'A job of an excluded application is passed over.')
    assertNone(await next('a', 'b'), 'Nothing is claimed when all applications with jobs are excluded.')
    assert.equal(await next(), 'a1', 'An excluded application keeps its turn.')
    await advance(leaseMs + 100)
    // Both leases have run out; b's ran out first.
    assert.equal(await next('b'), 'a1', 'A job whose lease ran out is passed over if its application is excluded.')
    assert.equal(await next('b'), 'a2', 'A waiting job is claimed if the application of the lapsed one is excluded.')
    assert.equal(await next('a'), 'b1', 'The lapsed job is claimed first once its application is no longer excluded.')
    assert.equal(await next('a'), 'b2', 'The jobs of the application that is not excluded are claimed.')
    assertNone(await next(), 'No job is left to claim.')
  },

  async 'a claim that names applications gets only their jobs, in turn; others keep their turns'({ store, advance }) {
    const create = namedCreator({ store, advance })
    for (const name of ['a1', 'b1', 'b2', 'c1', 'c2']) await create(name)
    const next = async (...names: string[]) =>
      (await store.claim({ ...worker, onlyApps: names.length > 0 ? names : undefined }))?.name
    assert.equal(await next('c'), 'c1', 'A job of the named application is claimed even if it is the turn of another.')
    assertNone(await next('d'), 'Nothing is claimed for an application without jobs.')
    assert.equal(await next('b', 'c'), 'b1', 'Several named applications take turns.')
    assert.equal(await next(), 'a1', 'An application that was not named keeps its turn.')
    await advance(leaseMs + 100)
    assert.equal(await next('b'), 'b1', 'A job whose lease ran out is passed over if its application is not named.')
    assert.equal(await next('b'), 'b2', 'A waiting job of the named application is claimed after its lapsed one.')
    assertNone(await next('b'), 'The jobs of other applications are still there to claim.')
  },

  async 'an application with hundreds of jobs does not hold up the single job of another'({ store, advance }) {
    const create = namedCreator({ store, advance })
    await together(300, () => store.create(named('busy')))
    assert.deepEqual(await names(store, 2), ['busy', 'busy'], 'The only application with jobs gets every claim.')
    await create('quiet')
    assert.deepEqual(
      await names(store, 3),
      ['quiet', 'busy', 'busy'],
      "A new application's job is claimed before the many of another.",
    )
  },

  async 'an application whose jobs come one at a time takes turns with one that has many'({ store, advance }) {
    const create = namedCreator({ store, advance })
    for (const name of ['busy1', 'busy2', 'busy3']) await create(name)
    const order: string[] = []
    for (let n = 1; n <= 3; n++) {
      await create(`single${n}`)
      order.push(...(await names(store, 2)))
    }
    assert.deepEqual(
      order.map((name) => name.slice(0, -1)).sort(),
      [...Array(3).fill('busy'), ...Array(3).fill('single')],
      'An application whose jobs come one at a time gets half of the claims.',
    )
  },

  async 'a job that is not due yet does not hold up other jobs, of its application or of others'({ store, advance }) {
    const create = namedCreator({ store, advance })
    const first = await create('a1')
    await create('b1')
    await store.claim({ ...worker, id: first })
    await store.apply(first, requeue(1, { delayMs: leaseMs }))
    assert.deepEqual(await names(store, 2), ['b1'], 'A job that is not due yet does not hold up another application.')
    await create('a2')
    assert.deepEqual(
      await names(store, 2),
      ['a2'],
      'A job that is not due yet does not hold up another job of its application.',
    )
    await advance(leaseMs + 100)
    const retried = await store.claim({ owner: 'later', leaseMs: leaseMs * 100, id: first })
    assert.equal(retried?.token, 2, 'A requeued job is claimed when its delay has passed, with the next token.')
  },

  async 'a job whose lease ran out is claimed before waiting ones, regardless of turns'({ store, advance }) {
    const create = namedCreator({ store, advance })
    await create('a1')
    const [lost] = await names(store, 1, leaseMs)
    await create('a2')
    await create('b1')
    await advance(leaseMs + 100)
    assert.deepEqual(
      [lost, await names(store, 4)],
      ['a1', ['a1', 'b1', 'a2']],
      'A job whose lease ran out is claimed before any waiting job.',
    )
  },

  async 'canceled and deleted jobs do not use up a turn of their application'({ store, advance }) {
    const create = namedCreator({ store, advance })
    await store.apply(await create('a1'), cancel())
    await store.apply(await create('b1'), { kind: 'delete' })
    await store.apply(await create('c1'), { kind: 'delete' })
    for (const name of ['c2', 'd1']) await create(name)
    assert.deepEqual(
      await names(store, 5),
      ['c2', 'd1'],
      'Canceled and deleted jobs do not use up a turn of their applications.',
    )
    await create('b2')
    await create('a2')
    assert.deepEqual(
      (await names(store, 5)).sort(),
      ['a2', 'b2'],
      'Applications whose jobs were canceled or deleted are served when they have new ones.',
    )
  },

  async 'forty simultaneous claims of forty jobs of a few applications all get a job'({ store }) {
    for (let round = 0; round < 5; round++) {
      await together(40, (n) => store.create(named(n < 30 ? 'big' : `small-${n % 4}`)))
      const results = await together(40, (n) => store.claim({ owner: `worker-${n}`, leaseMs: leaseMs * 100 }))
      assert.equal(
        new Set(results.map((job) => job?.id ?? 'nothing')).size,
        40,
        'Forty simultaneous claims of forty jobs get all of them.',
      )
      assert.ok(
        results.every((job) => job?.token === 1),
        'Each of these jobs is claimed for the first time, with token 1.',
      )
    }
  },

  async 'no job is missed when jobs are created and claimed at the same time'({ store }) {
    const created = new Set<string>()
    let claims = 0
    const results: (string | undefined)[] = []
    await Promise.all([
      ...Array.from({ length: 6 }, async (_, writer) => {
        for (let n = 0; n < 15; n++) created.add((await store.create(named(`app-${(writer + n) % 5}`))).job.id)
      }),
      ...Array.from({ length: 6 }, async () => {
        while (claims++ < 60) results.push((await store.claim({ ...worker, leaseMs: leaseMs * 100 }))?.id)
      }),
    ])
    for (let job; (job = await store.claim({ ...worker, leaseMs: leaseMs * 100 }));) results.push(job.id)
    const claimed = results.filter((id) => id !== undefined)
    assert.deepEqual(claimed.sort(), [...created].sort(), 'Every job that was created is claimed exactly once.')
  },

  async 'a claim of an empty store gets nothing'({ store }) {
    assertNone(await store.claim(worker), 'A claim of an empty store is undefined.')
  },

  async 'records that cannot be read do not prevent other jobs from being claimed'({ store, advance, damage }) {
    assert.ok(damage, 'Give `damage`, or skip the case and say why no record can be damaged.')
    const create = namedCreator({ store, advance })
    const made = new Map<string, string>()
    for (const name of ['lapsed1', 'lapsed2', 'queued1', 'queued2', 'other1']) made.set(name, await create(name))
    for (const name of ['lapsed1', 'lapsed2']) await store.claim({ ...worker, id: made.get(name) })
    await advance(leaseMs + 100)
    for (const name of ['lapsed1', 'queued1']) await damage(made.get(name) ?? '')
    assert.deepEqual(
      new Set(await names(store)),
      new Set(['lapsed2', 'other1', 'queued2']),
      'Every job whose record can be read is claimed.',
    )
    await assertFails(
      async () => store.get(made.get('queued1') ?? ''),
      'STORE_UNAVAILABLE',
      'get of a record that cannot be read fails with STORE_UNAVAILABLE: it is neither there nor absent.',
    )
  },

  async 'a requeued job is not claimed before its delay has passed'({ store, advance }) {
    const { job } = await store.create(sampleJob())
    await store.claim({ ...worker, id: job.id })
    await store.apply(job.id, requeue(1, { delayMs: leaseMs }))
    assertNone(
      await store.claim({ ...worker, id: job.id }),
      'A requeued job is not claimed by name before its delay has passed.',
    )
    assertNone(await store.claim(worker), 'A requeued job is not claimed as the next one before its delay has passed.')
    await advance(leaseMs + 100)
    assert.equal(
      (await store.claim(worker))?.token,
      2,
      'A requeued job is claimed when its delay has passed, with the next token.',
    )
  },

  async 'a new job is not claimed before its notBefore'({ store, advance }) {
    const { job } = await store.create(sampleJob())
    const { job: later } = await store.create(sampleJob({ notBefore: job.createdAt + leaseMs }))
    assertNone(await store.claim({ ...worker, id: later.id }), 'A job is not claimed by name before its notBefore.')
    assert.equal((await store.claim(worker))?.id, job.id, 'A job that is due is claimed.')
    assertNone(await store.claim(worker), 'A job is not claimed as the next one before its notBefore.')
    await advance(leaseMs + 100)
    assert.equal(
      (await store.claim({ ...worker, id: later.id }))?.id,
      later.id,
      'A job is claimed when its notBefore has come.',
    )
  },

  async 'a simultaneous claim and cancel give a consistent result'({ store }) {
    for (let round = 0; round < 10; round++) {
      const { job } = await store.create(sampleJob())
      const [claimed, canceled] = await Promise.all([
        store.claim({ ...worker, id: job.id }),
        store.apply(job.id, cancel()),
      ])
      const now = await store.get(job.id)
      if (claimed)
        assert.deepEqual(
          [now?.status, now?.cancelRequested, canceled?.status],
          ['STARTED', true, 'STARTED'],
          'If the claim comes first, the job keeps running and is marked as canceled.',
        )
      else
        assert.deepEqual(
          [now?.status, canceled?.status],
          ['FAILED', 'FAILED'],
          'If the cancel comes first, the job has ended and is not claimed.',
        )
    }
  },
} satisfies Cases<JobStoreContext>

/** A job whose application is given by the letters of its name. */
function named(name: string): JobRecord {
  return sampleJob({ app: applicationOf(name), name })
}

function applicationOf(name: string): string {
  return name.replace(/\d+$/, '')
}

/** Creates named jobs, each some milliseconds after the one before; returns their ids. */
function namedCreator({ store, advance }: Pick<JobStoreContext, 'store' | 'advance'>) {
  const create = creator(store, advance)
  return (name: string) => create(name, { app: applicationOf(name) })
}
