import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { Pool } from 'pg'
import { afterAll, test } from 'vitest'
import { bullmqQueue } from '../../../src/adapters/queues/bullmq/index.js'
import { memoryApplications, memoryBlobs, memoryJobs } from '../../../src/adapters/memory.js'
import { postgresStores } from '../../../src/adapters/postgres.js'
import { JobEngine } from '../../../src/core/engine/engine.js'
import { StemworkError } from '../../../src/core/engine/errors.js'
import type { EngineSettings } from '../../../src/core/engine/options.js'
import type { JobStore } from '../../../src/core/engine/ports/job-store.js'
import { inlineRunner } from '../../../src/core/engine/runner/inline-runner.js'
import { gate, keys, textOf, textWorkflow } from '../../engine/harness.js'
import { describeWith } from '../../servers/found-server.js'
import { startPostgres } from '../../servers/postgres.js'
import { startRedis } from '../../servers/redis.js'

describeWith(
  'engines on one Postgres and one Redis',
  { postgres: await startPostgres(), redis: await startRedis() },
  ({ postgres, redis }) => {
    afterAll(async () => {
      await postgres.release()
      await redis.release()
    })

    /** Engines of one deployment, with separate connections, as if in separate processes. */
    async function deployment(
      count: number,
      settings: EngineSettings,
      stage: (jobId: string) => Promise<void> | void = () => {},
    ) {
      const schema = `test_${randomUUID().replaceAll('-', '')}`
      const prefix = randomUUID()
      // All engines of this process share the same memory.
      const blobs = { ...memoryBlobs(), traits: { scope: 'shared' as const } }
      const workflow = textWorkflow(({ jobId }) => stage(jobId))
      const nodes = Array.from({ length: count }, () => {
        const pool = new Pool({ connectionString: postgres.url, connectionTimeoutMillis: 5000 })
        const { jobs, applications, migrate } = postgresStores({ pool, schema })
        const queue = bullmqQueue({ connection: redis.url, prefix, answerTimeoutMs: 1000 })
        const runner = inlineRunner({ resolve: () => workflow })
        return {
          pool,
          jobs,
          migrate,
          engine: new JobEngine({ jobs, applications, queue, blobs, runner, workflows: [workflow] }, settings),
        }
      })
      await nodes[0]!.migrate()
      return {
        engines: nodes.map(({ engine }) => engine),
        jobs: nodes[0]!.jobs,
        blobs,
        submit: async (engine: JobEngine, app = 'app') =>
          (await engine.submit({ app, workflow: workflow.id, params: {} })).job.id,
        async close() {
          await Promise.all(nodes.map(({ engine }) => engine.close()))
          await Promise.all(nodes.map(({ pool }) => pool.end()))
        },
      }
    }

    async function allEnded(jobs: JobStore, total: number): Promise<void> {
      const ended = () => jobs.count({ statuses: ['SUCCEEDED', 'FAILED'] }).catch(() => 0)
      while ((await ended()) < total) await sleep(50)
    }

    test('200 jobs that two engines submit and run end once each, each with its own result', async () => {
      const runs = new Map<string, number>()
      const { engines, jobs, blobs, submit, close } = await deployment(
        2,
        { dispatch: { concurrency: 4 } },
        (id) => void runs.set(id, (runs.get(id) ?? 0) + 1),
      )
      const succeeded: string[] = []
      for (const engine of engines) engine.on('job.succeeded', ({ job }) => void succeeded.push(job.id))
      await Promise.all(engines.map((engine) => engine.start()))
      const ids = await Promise.all(Array.from({ length: 200 }, (_, n) => submit(engines[n % 2]!, `app-${n % 3}`)))
      await allEnded(jobs, 200)
      const ended = await jobs.list({ limit: 1000 })
      assert.deepEqual(succeeded.sort(), [...ids].sort())
      assert.deepEqual(
        [...runs.values()],
        ids.map(() => 1),
      )
      for (const job of ended) {
        assert.deepEqual([job.status, job.token, job.attempts], ['SUCCEEDED', 1, 1])
        assert.equal(await textOf(blobs, job.outputs?.text?.key ?? ''), `text of ${job.id}`)
      }
      assert.equal((await keys(blobs)).length, 200)
      await close()
    })

    test('workers find every job that a wiped Redis forgot, and are notified of later ones again', async () => {
      const { engines, jobs, submit, close } = await deployment(2, {
        dispatch: { concurrency: 4, sweepIntervalMs: 3_600_000 },
      })
      const [front, worker] = engines
      for (let n = 0; n < 50; n++) await submit(front!)
      const admin = new Redis(redis.url)
      await admin.flushall()
      assert.equal((await front!.health()).queued, 50)
      // Starting it replaces any tick of a sweep.
      await worker!.start()
      await allEnded(jobs, 50)
      assert.equal(await jobs.count({ statuses: ['SUCCEEDED'] }), 50)
      await admin.flushall()
      admin.disconnect()
      for (let n = 0; n < 10; n++) await submit(front!)
      await allEnded(jobs, 60)
      await close()
    })

    test('a single job of an application is next even if another has 200 waiting, with two workers', async () => {
      const { engines, jobs, submit, close } = await deployment(2, {
        dispatch: { concurrency: 1, sweepIntervalMs: 3_600_000 },
      })
      await Promise.all(Array.from({ length: 200 }, () => submit(engines[0]!, 'busy')))
      const single = await submit(engines[0]!, 'quiet')
      await Promise.all(engines.map((engine) => engine.start()))
      await allEnded(jobs, 201)
      // By start of claim: on a busy machine, the other worker may claim and run more jobs before the answer arrives.
      const at = (await jobs.get(single))?.startedAt ?? Infinity
      const earlier = (await jobs.list({ limit: 1000 })).filter(({ startedAt }) => (startedAt ?? Infinity) < at).length
      assert.ok(earlier <= 4, `the single job was claimed after ${earlier} others`)
      await close()
    })

    test('one notification is enough for all workers to share a burst', async () => {
      const runs = new Map<string, string>()
      const { engines, jobs, submit, close } = await deployment(
        3,
        { dispatch: { concurrency: 2, sweepIntervalMs: 3_600_000 } },
        () => sleep(100),
      )
      for (const [place, engine] of engines.entries())
        engine.on('job.started', ({ job }) => void runs.set(job.id, `worker-${place}`))
      await Promise.all(engines.map((engine) => engine.start()))
      await Promise.all(Array.from({ length: 60 }, () => submit(engines[0]!)))
      await allEnded(jobs, 60)
      assert.equal(new Set(runs.values()).size, 3)
      await close()
    })

    test('jobs finish although Postgres crashes and restarts in the middle', async () => {
      const { engines, jobs, blobs, submit, close } = await deployment(
        2,
        { dispatch: { concurrency: 4, leaseMs: 3000, sweepIntervalMs: 200, retryDelayMs: 10 } },
        () => sleep(20),
      )
      await Promise.all(engines.map((engine) => engine.start()))
      const ids = await Promise.all(Array.from({ length: 80 }, () => submit(engines[0]!)))
      while ((await jobs.count({ statuses: ['SUCCEEDED'] })) < 20) await sleep(20)
      await postgres.restart()
      await allEnded(jobs, ids.length)
      const ended = await jobs.list({ limit: 1000 })
      assert.deepEqual(ended.map(({ id }) => id).sort(), [...ids].sort())
      for (const job of ended) {
        assert.equal(job.status, 'SUCCEEDED')
        assert.equal(await textOf(blobs, job.outputs?.text?.key ?? ''), `text of ${job.id}`)
      }
      await close()
    })

    test('jobs are accepted while Redis is down, and run when it is back', async () => {
      // This job holds the only slot; otherwise the sweep would find the other job as soon as it is accepted.
      const first = gate()
      const begun = gate()
      const { engines, jobs, submit, close } = await deployment(
        1,
        { dispatch: { concurrency: 1, sweepIntervalMs: 200 } },
        () => (begun.open(), first.opened),
      )
      await engines[0]!.start()
      await submit(engines[0]!)
      await begun.opened
      await redis.kill()
      await submit(engines[0]!)
      assert.equal(await jobs.count({ statuses: ['QUEUED'] }), 1)
      await redis.start()
      first.open()
      await allEnded(jobs, 2)
      await close()
    })

    test('a job that is submitted inside a transaction of the host runs after its commit', async () => {
      const { engines, jobs, close } = await deployment(1, { dispatch: { sweepIntervalMs: 200 } })
      const [engine] = engines
      await engine!.start()
      const pool = new Pool({ connectionString: postgres.url })
      const client = await pool.connect()
      await client.query('BEGIN')
      const { job } = await engine!.submit({ app: 'app', workflow: 'test/text', params: {} }, { tx: client })
      assert.equal(await engine!.get(job.id), undefined)
      await client.query('COMMIT')
      client.release()
      await pool.end()
      await allEnded(jobs, 1)
      assert.equal((await engine!.get(job.id))?.status, 'SUCCEEDED')
      await close()
    })
  },
)

test('a shared queue over a store of one process is refused', () => {
  const workflow = textWorkflow()
  const parts = {
    jobs: memoryJobs(),
    applications: memoryApplications(),
    blobs: memoryBlobs(),
    workflows: [workflow],
    runner: inlineRunner({ resolve: () => workflow }),
  }
  assert.throws(
    () => new JobEngine({ ...parts, queue: bullmqQueue({ connection: {} }) }),
    (error) => StemworkError.is(error) && error.code === 'INVALID_OPTIONS',
  )
})
