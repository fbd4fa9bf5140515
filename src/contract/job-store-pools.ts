import assert from 'node:assert/strict'
import { sampleJob } from './job-samples.js'
import { type JobStoreContext, leaseMs } from './job-store-context.js'
import type { Cases } from './suite.js'

const worker = { owner: 'worker', leaseMs }

export const poolCases = {
  async 'a worker gets only jobs whose labels it has all, lapsed ones too; one that names none gets any'({
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
    assert.equal(await next([]), undefined, 'A worker without labels gets no job that needs one.')
    const { job: named } = await store.create(sampleJob({ name: 'named', pool: 'gpu' }))
    assert.equal(
      await store.claim({ ...worker, id: named.id, labels: ['cpu'] }),
      undefined,
      'A named job is not granted to a worker without its label.',
    )
    assert.equal(
      (await store.claim({ ...worker, id: named.id, labels: ['gpu', 'cpu'] }))?.id,
      named.id,
      'A named job is granted to a worker that has its label among others.',
    )
    assert.equal(await next(['gpu']), 'gpu', 'A worker gets a job whose one label it has.')
    assert.equal(await next(['gpu']), undefined, 'A worker gets no job of which it has only one of two labels.')
    assert.equal(await next(['gpu', 'model:big', 'x']), 'both', 'A worker gets a job whose labels it has all.')
    await advance(leaseMs + 100)
    assert.equal(await next([]), 'any', 'A lapsed job without labels is granted to any worker.')
    assert.equal(await next([]), undefined, 'A lapsed job that needs labels is not granted to a worker without them.')
    assert.deepEqual(
      new Set([await next(), await next(), await next()]),
      new Set(['both', 'gpu', 'named']),
      'A worker that names no labels gets any job.',
    )
  },

  async 'a job that goes on with other labels is granted and counted by these'({ store }) {
    const { job } = await store.create(sampleJob({ pool: 'eu' }))
    const held = await store.claim({ ...worker, labels: ['eu'] })
    const suspend = { kind: 'suspend', token: held?.token ?? 0, waitsFor: [], pool: 'eu gpu' } as const
    assert.equal((await store.apply(job.id, suspend))?.pool, 'eu gpu', 'The record has the labels that it needs now.')
    assert.equal(
      await store.claim({ ...worker, labels: ['eu'] }),
      undefined,
      'A worker that had the labels before gets it no more.',
    )
    const [lane, ...others] = await store.backlog()
    assert.deepEqual(
      [lane?.pool, lane?.queued, others],
      ['eu gpu', 1, []],
      'It waits for the labels that it needs now.',
    )
    assert.equal(
      (await store.claim({ ...worker, labels: ['eu', 'gpu'] }))?.id,
      job.id,
      'A worker that has what it needs now gets it.',
    )
  },

  async 'jobs that a worker cannot take keep no others from it, of whatever application and workflow'({ store }) {
    for (let n = 0; n < 150; n++) await store.create(sampleJob({ pool: 'gpu', priority: 2, workflow: `w/${n % 2}` }))
    const { job } = await store.create(sampleJob({ workflow: 'w/1' }))
    assert.equal(
      (await store.claim({ ...worker, labels: [], workflows: ['w/0', 'w/1'] }))?.id,
      job.id,
      'Jobs that a worker cannot take do not hide the one that it can.',
    )
    assert.equal(
      await store.claim({ ...worker, labels: [] }),
      undefined,
      'A worker gets none of the jobs that it cannot take.',
    )
  },

  async 'the backlog tells what waits and runs by workflow and pool'({ store, advance }) {
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
        `oldestMs is 0 where nothing waits, and else how long the first job has been due: ${oldestMs} is neither.`,
      )
  },
} satisfies Cases<JobStoreContext>
