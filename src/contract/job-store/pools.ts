import assert from 'node:assert/strict'
import { assertNone } from '../broken-promise.js'
import { sampleJob } from '../job-samples.js'
import { type JobStoreContext, leaseMs } from '../job-store-context.js'
import type { Cases } from '../suite.js'

const worker = { owner: 'worker', leaseMs }

export const poolCases = {
  async 'a worker gets only jobs, even lapsed ones, whose labels it has; if it gives no labels, it gets any job'({
    store,
    advance,
  }) {
    for (const [name, pool] of [
      ['both', 'gpu model:big'],
      ['gpu', 'gpu'],
      ['any', ''],
    ] as const)
      await store.create(sampleJob({ name, pool, app: name }))
    const next = async (labels?: string[]) => (await store.claim({ ...worker, labels }))?.name
    assert.equal(await next(['model:big']), 'any', 'A worker gets no job that needs a label it does not have.')
    assertNone(await next([]), 'A worker without labels gets no job that needs one.')
    const { job: named } = await store.create(sampleJob({ name: 'named', pool: 'gpu' }))
    assertNone(
      await store.claim({ ...worker, id: named.id, labels: ['cpu'] }),
      'A named job is not granted to a worker without its label.',
    )
    assert.equal(
      (await store.claim({ ...worker, id: named.id, labels: ['gpu', 'cpu'] }))?.id,
      named.id,
      'A named job is granted to a worker that has its label among others.',
    )
    assert.equal(await next(['gpu']), 'gpu', 'A worker gets a job if it has its one label.')
    assertNone(await next(['gpu']), 'A worker gets no job if it has one of its two labels.')
    assert.equal(await next(['gpu', 'model:big', 'x']), 'both', 'A worker gets a job if it has all of its labels.')
    await advance(leaseMs + 100)
    assert.equal(await next([]), 'any', 'A lapsed job without labels is granted to any worker.')
    assertNone(await next([]), 'A lapsed job that needs labels is not granted to a worker without them.')
    assert.deepEqual(
      new Set([await next(), await next(), await next()]),
      new Set(['both', 'gpu', 'named']),
      'A worker that gives no list of labels gets any job.',
    )
  },

  async 'a suspended job whose labels change is claimed and counted by its new labels'({ store }) {
    const { job } = await store.create(sampleJob({ pool: 'eu' }))
    const held = await store.claim({ ...worker, labels: ['eu'] })
    const suspend = { kind: 'suspend', token: held?.token ?? 0, waitsFor: [], pool: 'eu gpu' } as const
    assert.equal((await store.apply(job.id, suspend))?.pool, 'eu gpu', 'The record has the labels that it needs now.')
    assertNone(
      await store.claim({ ...worker, labels: ['eu'] }),
      'A worker that has only the old labels no longer gets the job.',
    )
    const [lane, ...others] = await store.backlog()
    assert.deepEqual(
      [lane?.pool, lane?.queued, others],
      ['eu gpu', 1, []],
      'The job is in the backlog of the labels that it needs now.',
    )
    assert.equal(
      (await store.claim({ ...worker, labels: ['eu', 'gpu'] }))?.id,
      job.id,
      'A worker that has the labels that the job needs now gets it.',
    )
  },

  async 'jobs that a worker cannot take do not hide the ones that it can'({ store }) {
    for (let n = 0; n < 150; n++) await store.create(sampleJob({ pool: 'gpu', priority: 2, workflow: `w/${n % 2}` }))
    const { job } = await store.create(sampleJob({ workflow: 'w/1' }))
    assert.equal(
      (await store.claim({ ...worker, labels: [], workflows: ['w/0', 'w/1'] }))?.id,
      job.id,
      'Jobs that a worker cannot take do not hide the one that it can.',
    )
    assertNone(await store.claim({ ...worker, labels: [] }), 'A worker gets none of the jobs that it cannot take.')
  },

  async 'the backlog counts waiting and running jobs by workflow and pool'({ store, advance }) {
    assert.deepEqual(await store.backlog(), [], 'The backlog of an empty store is empty.')
    const create = async (count: number, fields: object) => {
      for (let n = 0; n < count; n++) await store.create(sampleJob(fields))
    }
    await create(3, { workflow: 'w/b', app: 'a' })
    await create(2, { workflow: 'w/b', pool: 'gpu' })
    await create(1, { workflow: 'w/a', app: 'b' })
    const { job: clock } = await store.create(sampleJob({ workflow: 'w/c' }))
    await store.apply(clock.id, { kind: 'delete' })
    await create(1, { workflow: 'w/c', notBefore: clock.createdAt + 3_600_000 })
    await advance(300)
    await create(1, { workflow: 'w/b', app: 'c' })
    await store.claim({ ...worker, workflows: ['w/a'] })
    await store.claim({ ...worker, workflows: ['w/b'], labels: [] })
    const backlog = await store.backlog()
    assert.deepEqual(
      backlog.map(({ workflow, pool, queued, running }) => ({ workflow, pool, queued, running })),
      [
        { workflow: 'w/a', pool: '', queued: 0, running: 1 },
        { workflow: 'w/b', pool: '', queued: 3, running: 1 },
        { workflow: 'w/b', pool: 'gpu', queued: 2, running: 0 },
      ],
      'The backlog has a row for each workflow and pool with due or running jobs, in this order.',
    )
    for (const { queued, oldestMs } of backlog)
      assert.ok(
        queued === 0 ? oldestMs === 0 : oldestMs >= 300,
        `oldestMs is how long the first job has been due, or 0 if none waits. It was ${oldestMs}.`,
      )
  },
} satisfies Cases<JobStoreContext>
