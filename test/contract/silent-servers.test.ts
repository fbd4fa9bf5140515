import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'pg'
import { afterEach, expect, test, vi } from 'vitest'
import { bullmqQueue } from '../../src/adapters/queues/bullmq/index.js'
import { postgresStores } from '../../src/adapters/postgres.js'
import { sampleJob, succeed } from '../../src/contract/job-samples.js'
import type { JobRecord } from '../../src/core/engine/job/job.js'
import type { BlobStore } from '../../src/core/engine/ports/blob-store.js'
import { memoryBlobs, memoryQueue } from '../../src/adapters/memory.js'
import { createHandler } from '../../src/http/index.js'
import { testEngine, textWorkflow } from '../engine/harness.js'
import { resumeTime, stopTime } from '../engine/stopped-time.js'
import { describeWith } from '../servers/found-server.js'
import { findPostgres } from '../servers/postgres.js'
import { findRedis } from '../servers/redis.js'
import { startSilentProxy } from '../servers/silent-proxy.js'

const postgres = await findPostgres()
const redis = await findRedis()
const outage = { code: 'STORE_UNAVAILABLE', retryable: true }

afterEach(resumeTime)

/** The outcomes of the calls within a minute of fake time, which passes as fast as this process runs. */
async function withinMinute<Result>(calls: Promise<Result>[]): Promise<PromiseSettledResult<Result>[]> {
  let outcomes: PromiseSettledResult<Result>[] | undefined
  void Promise.allSettled(calls).then((all) => (outcomes = all))
  for (let second = 0; second < 60 && outcomes === undefined; second++) {
    // Sockets continue in real time.
    for (let piece = 0; piece < 10; piece++) await new Promise((resolve) => setImmediate(resolve))
    await vi.advanceTimersByTimeAsync(1000)
  }
  if (outcomes === undefined) throw new Error('A call had not ended after a minute.')
  return outcomes
}

describeWith('servers whose connections are open and silent', { postgres, redis }, ({ postgres, redis }) => {
  test('Postgres: every call ends, with and without a connection, and the pool works again afterwards', async () => {
    const schema = `test_${randomUUID().replaceAll('-', '')}`
    const proxy = await startSilentProxy(postgres.url)
    const direct = new Pool({ connectionString: postgres.url })
    const hasty = new Pool({ connectionString: proxy.url, max: 3, connectionTimeoutMillis: 2000 })
    // The default of pg: it waits for a connection for ever.
    const patient = new Pool({ connectionString: proxy.url, max: 2 })
    try {
      const recovering = postgresStores({ pool: hasty, schema })
      const stores = [recovering, postgresStores({ pool: patient, schema })]
      await recovering.migrate()
      const { job } = await recovering.jobs.create(sampleJob())
      await Promise.all(stores.map(({ jobs }) => jobs.get(job.id)))
      void proxy.silence()
      stopTime()
      const calls = stores.flatMap(({ jobs, migrate }) => [
        jobs.get(job.id),
        jobs.claim({ owner: 'w', leaseMs: 1000 }),
        jobs.create(sampleJob()),
        jobs.create(sampleJob(), { maxQueued: 10 }),
        jobs.due('lapsed', 1),
        migrate(),
      ])
      const outcomes = await withinMinute<unknown>(calls)
      resumeTime()
      for (const outcome of outcomes) expect(outcome).toMatchObject({ status: 'rejected', reason: outage })
      proxy.speak()
      expect((await recovering.jobs.get(job.id))?.id).toBe(job.id)
    } finally {
      await direct.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
      await proxy.close()
      await Promise.all([direct, hasty, patient].map((pool) => pool.end()))
    }
  })

  test('Postgres: health and metrics say so within the ten seconds that Prometheus waits', async () => {
    const schema = `test_${randomUUID().replaceAll('-', '')}`
    const proxy = await startSilentProxy(postgres.url)
    const direct = new Pool({ connectionString: postgres.url })
    const pool = new Pool({ connectionString: proxy.url })
    const { jobs, applications, migrate } = postgresStores({ pool, schema })
    await migrate()
    const blobs = { ...memoryBlobs(), traits: { scope: 'shared' } as const }
    const { engine } = testEngine(textWorkflow(), {}, { jobs, applications, blobs, queue: memoryQueue() })
    const handler = createHandler(engine, { metrics: true })
    try {
      expect(await engine.health()).toMatchObject({ ok: true })
      void proxy.silence()
      stopTime()
      let texts: string[] | undefined
      const answers = ['/readyz', '/metrics'].map((path) => handler(new Request(`http://service${path}`)))
      void Promise.all(answers.map(async (answer) => (await answer).text())).then((all) => (texts = all))
      for (let tenth = 0; tenth < 99 && texts === undefined; tenth++) {
        await new Promise((resolve) => setImmediate(resolve))
        await vi.advanceTimersByTimeAsync(100)
      }
      resumeTime()
      expect(texts?.[0]).toContain('The job store does not answer.')
      expect(texts?.[1]).toMatch(/^stemwork_up 0$/m)
      expect(texts?.[1]).toContain('stemwork_workflow_attempts_total')
    } finally {
      proxy.speak()
      await engine.close()
      await direct.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
      await proxy.close()
      await Promise.all([direct, pool].map((each) => each.end()))
    }
  })

  test('Postgres: the end of a job does not wait for that of another whose connection is silent', async () => {
    const schema = `test_${randomUUID().replaceAll('-', '')}`
    const proxy = await startSilentProxy(postgres.url)
    const direct = new Pool({ connectionString: postgres.url })
    const pool = new Pool({ connectionString: proxy.url })
    try {
      const { jobs, migrate } = postgresStores({ pool, schema })
      await migrate()
      for (const job of [sampleJob(), sampleJob()]) await jobs.create(job)
      const claimed = await jobs.claimSeveral?.({ owner: 'w', leaseMs: 60_000, nonce: 'n' }, { max: 2 })
      const [first, second] = claimed ?? []
      if (!first || !second) throw new Error('no two jobs')
      const end = (job: JobRecord) => jobs.apply(job.id, succeed(job, { nonce: 'n' }))
      await proxy.silence()
      proxy.speak()
      let isFirstOver = false
      const hanging = end(first)
        .catch(() => {})
        .finally(() => (isFirstOver = true))
      await expect.poll(() => pool.idleCount).toBe(0)
      expect((await end(second))?.status).toBe('SUCCEEDED')
      expect(isFirstOver).toBe(false)
      proxy.cut()
      await hanging
    } finally {
      await direct.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
      await proxy.close()
      await Promise.all([direct, pool].map((each) => each.end()))
    }
  })

  test('Redis: a subscription hears again, and meanwhile jobs are found without it', async () => {
    const schema = `test_${randomUUID().replaceAll('-', '')}`
    const proxy = await startSilentProxy(redis.url)
    const pool = new Pool({ connectionString: postgres.url })
    const { jobs, applications, migrate } = postgresStores({ pool, schema })
    const prefix = randomUUID()
    const queue = bullmqQueue({ connection: proxy.url, prefix, answerTimeoutMs: 500 })
    const heard = bullmqQueue({ connection: proxy.url, prefix: randomUUID(), answerTimeoutMs: 500 })
    try {
      await migrate()
      const blobs: BlobStore = { ...memoryBlobs(), traits: { scope: 'shared' } }
      const { engine, submit, until } = testEngine(
        textWorkflow(),
        { dispatch: { sweepIntervalMs: 100 } },
        { jobs, applications, blobs, queue },
      )
      let calls = 0
      const subscription = await heard.subscribe(async () => void calls++)
      await heard.notify()
      while (calls === 0) await sleep(10)
      await engine.start()
      void proxy.silence()
      await until((await submit()).id, 'SUCCEEDED')
      await engine.close({ timeoutMs: 100 })
      proxy.speak()
      while (calls < 2) {
        await heard.notify().catch(() => {})
        await sleep(100)
      }
      await subscription.stop()
    } finally {
      await heard.close()
      await pool.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
      await pool.end()
      await proxy.close()
    }
  })
})
