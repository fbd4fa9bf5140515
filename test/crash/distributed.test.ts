import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import pg from 'pg'
import { expect, test } from 'vitest'
import { bullmqQueue } from '../../src/adapters/queues/bullmq/index.js'
import { memoryApplications } from '../../src/adapters/memory.js'
import { postgresStores } from '../../src/adapters/postgres.js'
import { s3Blobs } from '../../src/adapters/blobs/s3/index.js'
import { JobEngine } from '../../src/core/engine/engine.js'
import type { JobRecord } from '../../src/core/engine/job/job.js'
import { inlineRunner } from '../../src/core/engine/runner/inline-runner.js'
import { defineWorkflow } from '../../src/core/engine/workflow/workflow.js'
import { z } from 'zod'
import { describeWith } from '../servers/found-server.js'
import { startPostgres } from '../servers/postgres.js'
import { startRedis } from '../servers/redis.js'
import { s3ClientOf } from '../servers/s3-client.js'
import { startS3Server } from '../servers/s3-server.js'
import { WorkerProcess } from './worker-process.js'

const jobCount = 200
const workerCount = 3
const rounds = 8
const jobsARound = 20
const flushRound = 2
const restartRound = 4

// The accepting node knows the workflow by its description only; its stages run on the workers.
const small = defineWorkflow({
  id: 'test/small',
  name: 'Small',
  description: '',
  params: z.object({ number: z.number() }),
  inputs: [],
  outputs: {},
  stages: [{ name: 'elsewhere', run: () => Promise.reject(new Error('must not run here')) }],
})

describeWith(
  'Postgres, BullMQ and S3 with three workers',
  { postgres: await startPostgres(), redis: await startRedis() },
  ({ postgres, redis }) => {
    test(`${jobCount} jobs end once each while workers are killed, Redis is flushed and Postgres restarts`, async () => {
      const s3 = await startS3Server(['media'])
      const client = s3ClientOf(s3)
      const pool = new pg.Pool({ connectionString: postgres.url })
      pool.on('error', () => {})
      const { jobs, migrate } = postgresStores({ pool })
      await migrate()
      const blobs = s3Blobs({ client, bucket: 'media' })
      const engine = new JobEngine(
        {
          jobs,
          blobs,
          queue: bullmqQueue({ connection: redis.url }),
          applications: memoryApplications(),
          workflows: [small],
          runner: inlineRunner({ resolve: () => small }),
        },
        { retention: { orphansMs: 0 } },
      )
      const urls = { store: postgres.url, queue: redis.url, blobs: `s3://media?endpoint=${encodeURIComponent(s3.url)}` }
      const environment = {
        AWS_ACCESS_KEY_ID: s3.credentials.accessKeyId,
        AWS_SECRET_ACCESS_KEY: s3.credentials.secretAccessKey,
      }
      const workers = Array.from({ length: workerCount }, () => new WorkerProcess(urls, environment))
      await Promise.all(workers.map((worker) => worker.start()))

      const ids: string[] = []
      const submit = async (count: number) => {
        for (; count > 0; count--)
          ids.push(
            (
              await retried(() =>
                engine.submit({ app: `app-${ids.length % 3}`, workflow: 'test/small', params: { number: ids.length } }),
              )
            ).job.id,
          )
      }
      // New jobs come with every blow, so that all blows fall while there is work, however fast the machine.
      await submit(jobCount - rounds * jobsARound)
      const counts = { kills: 0, flushes: 0, restarts: 0 }
      for (let round = 0; round < rounds; round++) {
        await submit(jobsARound)
        await delay(100 + Math.random() * 500)
        if (round === flushRound) {
          const flusher = new Redis(redis.url)
          await flusher.flushall()
          await flusher.quit()
          counts.flushes++
        }
        if (round === restartRound) {
          await postgres.restart()
          counts.restarts++
        }
        const victim = workers[Math.floor(Math.random() * workers.length)]
        await victim!.kill()
        counts.kills++
        void victim!.start().catch(() => {})
      }
      const giveUpAt = Date.now() + 240_000
      while (
        (await retried(() => jobs.count({ statuses: ['SUCCEEDED', 'FAILED'] }))) < jobCount &&
        Date.now() < giveUpAt
      )
        await delay(200)
      await Promise.all(workers.map((worker) => worker.stop()))

      const records = await retried(() => Promise.all(ids.map((id) => jobs.get(id))))
      const before = (await keysOf(blobs)).length
      const { orphans } = await engine.sweep({ files: true })
      const after = await keysOf(blobs)
      const accepted = records.flatMap((job) => Object.values(job?.outputs ?? {}).map((output) => output.key))
      const statuses = tally(records)
      console.log(
        `crash run: ${JSON.stringify({ jobs: jobCount, ...statuses, ...counts, attempts: tally(records, (job) => job.attempts), files: before, orphansSwept: orphans, unfinishedUploads: await unfinished(s3) })}`,
      )

      expect(counts).toEqual({ kills: rounds, flushes: 1, restarts: 1 })
      expect((statuses.SUCCEEDED ?? 0) + (statuses.FAILED ?? 0)).toBe(jobCount)
      expect(records.filter((job) => job?.status === 'FAILED').map((job) => job?.error?.reason)).toEqual(
        records.filter((job) => job?.status === 'FAILED').map(() => 'worker_lost'),
      )
      expect(new Set(accepted).size).toBe(2 * (statuses.SUCCEEDED ?? 0))
      expect(after.sort()).toEqual(accepted.sort())

      await engine.close()
      await pool.end()
      client.destroy()
      await s3.close()
      await Promise.all([postgres.release(), redis.release()])
    }, 300_000)
  },
)

/** Reads again while the database comes back. */
async function retried<Value>(read: () => Promise<Value>): Promise<Value> {
  for (let tries = 0; ; tries++) {
    try {
      return await read()
    } catch (error) {
      if (tries >= 40) throw error
      await delay(250)
    }
  }
}

async function keysOf(blobs: ReturnType<typeof s3Blobs>): Promise<string[]> {
  const found: string[] = []
  for await (const { key } of blobs.list('results/')) found.push(key)
  return found
}

async function unfinished(s3: Awaited<ReturnType<typeof startS3Server>>): Promise<number> {
  const { ListMultipartUploadsCommand } = await import('@aws-sdk/client-s3')
  const client = s3ClientOf(s3)
  const { Uploads } = await client.send(new ListMultipartUploadsCommand({ Bucket: 'media' }))
  client.destroy()
  return Uploads?.length ?? 0
}

function tally(
  records: (JobRecord | undefined)[],
  of: (job: JobRecord) => string | number = (job) => job.status,
): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const job of records) if (job) counts[of(job)] = (counts[of(job)] ?? 0) + 1
  return counts
}
