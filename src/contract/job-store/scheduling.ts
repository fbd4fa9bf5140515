import assert from 'node:assert/strict'
import { assertNone } from '../broken-promise.js'
import { creator, ids, names, preempt, sampleError, sampleJob, together, worker } from '../job-samples.js'
import { leaseMs, type JobStoreContext } from '../job-store-context.js'
import type { Cases } from '../suite.js'

export const schedulingCases = {
  async 'within an application, the highest priority is claimed first, then the longest wait, across workflows'({
    store,
    advance,
  }) {
    const create = creator(store, advance)
    await create('usual1', { workflow: 'w/b' })
    await create('late', { priority: -2 })
    await create('soon', { priority: 1, workflow: 'w/b' })
    await create('usual2')
    await create('first1', { priority: 2 })
    await create('first2', { priority: 2, workflow: 'w/b' })
    assert.deepEqual(
      await names(store),
      ['first1', 'first2', 'soon', 'usual1', 'usual2', 'late'],
      'Within an application, the highest priority is claimed first, and among equals the longest wait.',
    )
  },

  async 'priority does not take turns from other applications'({ store, advance }) {
    const create = creator(store, advance)
    for (const name of ['a1', 'a2']) await create(name, { app: 'a', priority: 2 })
    await create('b1', { app: 'b', priority: -2 })
    assert.deepEqual(
      await names(store),
      ['a1', 'b1', 'a2'],
      'Applications take turns whatever the priority of their jobs.',
    )
  },

  async 'simultaneous claims take the jobs with the highest priority'({ store }) {
    for (let n = 0; n < 12; n++) await store.create(sampleJob({ priority: n % 2, workflow: `w/${n % 3}` }))
    const jobs = await together(6, () => store.claim(worker))
    assert.deepEqual(
      jobs.map((job) => job?.priority),
      Array(6).fill(1),
      'Simultaneous claims take the jobs with the highest priority.',
    )
  },

  async 'a job is not claimed before its notBefore and holds up no others, whatever its priority'({ store, advance }) {
    const { job: clock } = await store.create(sampleJob())
    await store.apply(clock.id, { kind: 'delete' })
    const later = { priority: 2, notBefore: clock.createdAt + leaseMs }
    const { job } = await store.create(sampleJob({ name: 'later', ...later }))
    assert.equal(job.notBefore, later.notBefore, 'notBefore is kept as it was given.')
    assertNone(await store.claim({ ...worker, id: job.id }), 'A job is not claimed by name before its notBefore.')
    await store.create(sampleJob({ name: 'now' }))
    assert.deepEqual(await names(store), ['now'], 'A job that is not due yet holds no other up, whatever its priority.')
    await advance(leaseMs + 100)
    assert.deepEqual(await names(store), ['later'], 'A job is claimed when its notBefore has come.')
  },

  async 'only a queued job whose deadline has passed is overdue, and it can be ended for that'({ store, advance }) {
    const { job: clock } = await store.create(sampleJob())
    const deadline = clock.createdAt + leaseMs
    const [missed, begun, other] = await Promise.all(
      [deadline, deadline, deadline * 2].map(async (time) => (await store.create(sampleJob({ deadline: time }))).job),
    )
    assert.ok(missed && begun && other, 'Three jobs are created.')
    await store.claim({ ...worker, id: begun.id })
    const miss = { kind: 'miss', error: sampleError, retentionMs: 1000, messages: [] } as const
    assertNone(await store.apply(missed.id, miss), 'A job whose deadline has not passed has not missed it.')
    assert.deepEqual(await store.due('overdue', 10), [], 'No job is overdue before its deadline.')
    await advance(leaseMs + 100)
    assert.deepEqual(
      ids(await store.due('overdue', 10)),
      [missed.id],
      'Only a queued job whose deadline has passed is overdue.',
    )
    for (const job of [clock, begun, other])
      assertNone(await store.apply(job.id, miss), 'A job that has no deadline, runs, or has time left cannot miss it.')
    const ended = await store.apply(missed.id, miss)
    assert.deepEqual(
      [ended?.status, ended?.error, ended?.deadline],
      ['FAILED', sampleError, deadline],
      'A job that missed its deadline is FAILED with the error that was given.',
    )
    assert.deepEqual(await store.due('overdue', 10), [], 'A job that has ended is not overdue.')
  },

  async 'a worker gets only jobs, even lapsed ones, of the workflows that it can run'({ store, advance }) {
    const create = creator(store, advance)
    const [a, b] = [await create('a', { workflow: 'w/a' }), await create('b', { workflow: 'w/b' })]
    const next = async (workflows: string[], id?: string) =>
      (await store.claim({ owner: 'w', leaseMs, workflows, id }))?.name
    assertNone(await next([]), 'A worker without workflows gets no job.')
    assertNone(await next(['w/c']), 'A worker gets no job of another workflow.')
    assertNone(await next(['w/b'], a), 'A named job of another workflow is not granted.')
    assert.equal(await next(['w/c', 'w/b']), 'b', 'A worker gets a job of one of its workflows.')
    assertNone(await next(['w/b']), 'No job of this workflow is left.')
    assert.equal(await next(['w/a'], a), 'a', "A named job of the worker's workflow is granted.")
    await advance(leaseMs + 100)
    assert.equal(await next(['w/b']), 'b', 'A worker gets a lapsed job of its workflow.')
    assertNone(await next(['w/b'], b), 'A held lease is not granted again.')
  },

  async 'a preempted job keeps its place among the jobs of its application and counts no attempt'({ store, advance }) {
    const create = creator(store, advance)
    await create('a1')
    const long = await store.claim(worker)
    assert.ok(long, 'The first job is granted.')
    await create('a2')
    const queued = await store.apply(long.id, preempt(long))
    assert.deepEqual(
      [queued?.status, queued?.attempts, queued?.lease, queued?.dueAt, queued?.history.at(-1)?.outcome],
      ['QUEUED', 0, null, long.dueAt, 'preempted'],
      'A preempted job is queued as it was before its claim, and its history says so.',
    )
    assertNone(await store.apply(long.id, preempt(long)), 'A claim can be preempted only once.')
    assert.deepEqual(await names(store), ['a1', 'a2'], 'A preempted job comes before later jobs.')
  },

  async 'an application whose only job was preempted still counts as served'({ store, advance }) {
    const create = creator(store, advance)
    await create('a1', { app: 'a' })
    const long = await store.claim(worker)
    assert.ok(long, 'The first job is granted.')
    for (const name of ['b1', 'b2']) await create(name, { app: 'b' })
    assert.deepEqual(await names(store), ['b1', 'b2'], 'The jobs of the other application follow.')
    await store.apply(long.id, preempt(long))
    await create('c1', { app: 'c' })
    assert.deepEqual(await names(store), ['c1', 'a1'], 'An application that was served comes after one that was not.')
  },

  async 'belowRunning grants no job of an application that runs that many others, even a lapsed or named job'({
    store,
    advance,
  }) {
    const create = creator(store, advance)
    for (const name of ['a1', 'a2', 'a3']) await create(name, { app: 'a' })
    const b1 = await create('b1', { app: 'b' })
    const next = async (belowRunning: number, id?: string) =>
      (await store.claim({ owner: 'w', leaseMs, belowRunning, id }))?.name
    assertNone(await next(0), 'No application has fewer than 0 running jobs.')
    assert.deepEqual([await next(1), await next(1)], ['a1', 'b1'], 'Each application gets its first job.')
    assertNone(await next(1), 'An application that runs a job gets no second one.')
    assert.equal(await next(2), 'a2', 'An application that runs fewer jobs gets its next one.')
    const { id: a3 } = (await store.list({ app: 'a', statuses: ['QUEUED'], limit: 1 }))[0] ?? {}
    assertNone(await next(2, a3), 'The same rule applies to a claim that names a job.')
    await advance(leaseMs + 100)
    assert.equal(await next(1), 'b1', 'A lapsed job does not count against itself, but others of its application do.')
    assertNone(await next(1, b1), 'A held lease is not granted again.')
  },

  async 'ahead counts how many jobs of its application come before a queued job, up to a limit'({ store, advance }) {
    const create = creator(store, advance)
    const a1 = await create('a1', { workflow: 'w/b' })
    const a2 = await create('a2')
    const a3 = await create('a3')
    const urgent = await create('urgent', { priority: 1 })
    await create('b1', { app: 'b' })
    const { createdAt = 0 } = (await store.get(a1)) ?? {}
    const delayed = await create('delayed', { priority: 2, notBefore: createdAt + 1_000_000 })
    const ahead = async (id: string, max = 100) => await store.ahead(id, { max })
    assert.deepEqual(
      [await ahead(urgent), await ahead(a1), await ahead(a2), await ahead(a3), await ahead(a3, 2)],
      [0, 1, 2, 3, 2],
      'ahead counts the due jobs of the application that come before, by priority and time, up to `max`.',
    )
    assertNone(await ahead(delayed), 'A job that is not due yet has no position in the queue.')
    assertNone(await ahead('unknown'), 'An unknown job has no position in the queue.')
    await store.claim({ ...worker, id: urgent })
    assert.deepEqual(
      [await ahead(urgent), await ahead(a3)],
      [undefined, 2],
      'A claimed job has no position in the queue and is no longer counted.',
    )
  },

  async 'the queue shows running jobs, and waiting ones in the order of claims'({ store, advance }) {
    const queue = store.queue?.bind(store)
    if (!queue) return
    const create = async (app: string, name: string, fields: object = {}) => {
      await advance(5)
      return (await store.create(sampleJob({ app, name, ...fields }))).job
    }
    const names = (jobs: readonly { name: string | null }[]) => jobs.map(({ name }) => name)
    assert.deepEqual(await queue({ max: 9 }), { running: [], waiting: [] }, 'The queue of an empty store is empty.')
    const now = (await create('a', 'a1')).createdAt
    for (const name of ['a2', 'a3']) await create('a', name, { workflow: `w/${name}` })
    await create('a', 'a4', { priority: 1 })
    await create('b', 'b1', { pool: 'gpu' })
    await create('b', 'later', { notBefore: now + 3_600_000 })
    await create('c', 'c1')
    await store.claim({ owner: 'worker', leaseMs: 60_000 })
    await store.apply((await create('c', 'gone')).id, { kind: 'delete' })
    const { running, waiting } = await queue({ max: 9 })
    assert.deepEqual(names(running), ['a4'], 'The queue shows the running jobs.')
    assert.deepEqual(await store.get(running[0]?.id ?? ''), running[0], 'The queue shows whole records.')
    assert.deepEqual(
      names(waiting),
      ['b1', 'c1', 'a1', 'a2', 'a3'],
      'Applications take turns among the due jobs, which within one are in order of priority and time.',
    )
    for (const max of [2, 3, 4])
      assert.deepEqual(
        names((await queue({ max })).waiting),
        ['b1', 'c1', 'a1', 'a2'].slice(0, max),
        'At most `max` jobs are shown, those that claims would grant first.',
      )
    const claimed: (string | null | undefined)[] = []
    for (let n = 0; n < 5; n++) claimed.push((await store.claim({ owner: 'worker', leaseMs: 60_000 }))?.name)
    assert.deepEqual(claimed, names(waiting), 'Claims grant the jobs in the order that the queue showed.')
  },
} satisfies Cases<JobStoreContext>
