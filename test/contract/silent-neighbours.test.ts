import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'pg'
import { expect, test } from 'vitest'
import { s3Blobs } from '../../src/adapters/blobs/s3/index.js'
import { postgresStores } from '../../src/adapters/postgres.js'
import { bullmqQueue } from '../../src/adapters/queues/bullmq/index.js'
import { gate, testEngine, textWorkflow } from '../engine/harness.js'
import { describeWith } from '../servers/found-server.js'
import { findPostgres } from '../servers/postgres.js'
import { findRedis } from '../servers/redis.js'
import { s3ClientOf } from '../servers/s3-client.js'
import { startS3Server } from '../servers/s3-server.js'
import { type SilentProxy, startSilentProxy } from '../servers/silent-proxy.js'

const leaseMs = 1000
const outageMs = 3 * leaseMs
/** Ignores the message about each time that Redis is silent. */
const logger = { debug() {}, info() {}, warn() {}, error() {} }

const servers = { postgres: await findPostgres(), redis: await findRedis() }

describeWith('Redis and S3 fall silent while jobs run', servers, ({ postgres, redis }) => {
  /** Two workers that reach Postgres directly, and Redis and S3 through proxies. */
  async function deployment() {
    const schema = `test_${randomUUID().replaceAll('-', '')}`
    const s3 = await startS3Server()
    const proxies = { redis: await startSilentProxy(redis.url), s3: await startSilentProxy(s3.url) }
    const pool = new Pool({ connectionString: postgres.url })
    const { jobs, applications, migrate } = postgresStores({ pool, schema })
    await migrate()
    const runs: string[] = []
    const finish = gate()
    const workflow = textWorkflow(async ({ jobId, signal }) => {
      runs.push(jobId)
      const aborted = new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      await Promise.race([finish.opened, aborted])
    })
    const clients = [s3ClientOf({ ...s3, url: proxies.s3.url }), s3ClientOf({ ...s3, url: proxies.s3.url })]
    const engines = clients.map((client) => {
      const { hostname: host, port } = new URL(proxies.redis.url)
      const queue = bullmqQueue({
        connection: { host, port: Number(port) },
        prefix: schema,
        answerTimeoutMs: 500,
        logger,
      })
      const blobs = s3Blobs({ client, bucket: 'test', requestTimeoutMs: 500 })
      const settings = { dispatch: { leaseMs, sweepIntervalMs: 300, concurrency: 2 } }
      return testEngine(workflow, settings, { jobs, applications, blobs, queue }).engine
    })
    await Promise.all(engines.map((engine) => engine.start()))
    const submit = async () => (await engines[0]!.submit({ app: 'app', workflow: 'test/text', params: {} })).job.id
    return {
      proxies,
      runs,
      finish,
      submit,
      async ended(ids: string[]) {
        const found = () => Promise.all(ids.map((id) => jobs.get(id)))
        while ((await found()).some((job) => job?.completedAt === null)) await sleep(50)
        return (await found()).map((job) => [job?.status, job?.attempts, job?.lapses, job?.shutdownRequeues])
      },
      async close() {
        for (const proxy of Object.values(proxies)) proxy.cut()
        await Promise.all(engines.map((engine) => engine.close({ timeoutMs: 0 })))
        for (const client of clients) client.destroy()
        await Promise.all([
          proxies.redis.close(),
          proxies.s3.close(),
          s3.close(),
          pool.query(`DROP SCHEMA ${schema} CASCADE`),
        ])
        await pool.end()
      },
    }
  }

  const silent: Record<string, (keyof Awaited<ReturnType<typeof deployment>>['proxies'])[]> = {
    Redis: ['redis'],
    S3: ['s3'],
    both: ['redis', 's3'],
  }

  test.each(Object.keys(silent))(
    '%s: jobs that run and jobs that come end at their first attempt, and each ran once',
    async (name) => {
      const { proxies, runs, finish, submit, ended, close } = await deployment()
      const ids = [await submit(), await submit()]
      while (runs.length < 2) await sleep(20)
      const away: SilentProxy[] = silent[name]!.map((each) => proxies[each])
      for (const proxy of away) void proxy.silence()
      // The job's notification is lost: a sweep finds the job.
      ids.push(await submit())
      while (runs.length < 3) await sleep(20)
      await sleep(outageMs / 2)
      // The jobs' files have to wait for S3, under their leases.
      finish.open()
      await sleep(outageMs / 2)
      for (const proxy of away) proxy.speak()
      expect(await ended(ids)).toEqual(ids.map(() => ['SUCCEEDED', 1, 0, 0]))
      expect(runs.toSorted()).toEqual(ids.toSorted())
      await close()
    },
    60_000,
  )
})
