import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'pg'
import { afterAll, expect, test } from 'vitest'
import { z } from 'zod'
import { memoryQueue } from '../../src/adapters/queues/memory/memory-queue.js'
import { memoryBlobs } from '../../src/adapters/memory.js'
import { postgresStores } from '../../src/adapters/postgres.js'
import { defineWorkflow } from '../../src/core/engine/workflow/workflow.js'
import { keys, testEngine, textOf } from '../engine/harness.js'
import { describeWith } from '../servers/found-server.js'
import { startPostgres } from '../servers/postgres.js'

/** `STEMWORK_OUTAGE_SECONDS=600` removes the server for as long as the slowest failovers. */
const outageSeconds = Number(process.env.STEMWORK_OUTAGE_SECONDS ?? 60)
const unitMs = 500
const beforeMs = 6000
const unitsOf = (seconds: number) => Math.ceil((beforeMs + seconds * 1000) / unitMs)

const paramsSchema = z.object({ units: z.number(), isKept: z.boolean() })

/** Counts the runs, and notes each unit that is done. */
function countingWorkflow() {
  const done: Record<string, number[]> = {}
  const workflow = defineWorkflow({
    id: 'test/count',
    name: 'Count',
    description: 'Counts.',
    params: paramsSchema,
    inputs: [],
    outputs: { count: { fileName: 'count.txt', contentType: 'text/plain' } },
    stages: [
      {
        name: 'count',
        async run({ jobId, params, checkpoint, directory, outputPath, signal }) {
          const { units, isKept } = paramsSchema.parse(params)
          const counted: number[] = []
          done[jobId] ??= []
          for (let unit = 0; unit < units; unit++) {
            await sleep(unitMs, undefined, { signal })
            counted.push(unit)
            done[jobId].push(unit)
            if (!isKept || !checkpoint.isDue()) continue
            await writeFile(join(directory, 'part'), JSON.stringify(counted))
            await checkpoint.keep(join(directory, 'part'))
          }
          await writeFile(outputPath('count'), JSON.stringify(counted))
        },
      },
    ],
  })
  return { workflow, done }
}

const counted = (units: number) => Array.from({ length: units }, (_, unit) => unit)

describeWith('a long outage of Postgres', { postgres: await startPostgres() }, ({ postgres }) => {
  afterAll(() => postgres.release())

  test(
    `${outageSeconds} s: no job fails or is run again, with checkpoints or without, and all results are right`,
    async () => {
      const schema = `test_${randomUUID().replaceAll('-', '')}`
      const { workflow, done } = countingWorkflow()
      const blobs = { ...memoryBlobs(), traits: { scope: 'shared' } as const }
      const workers = await Promise.all(
        Array.from({ length: 3 }, async (_, worker) => {
          const pool = new Pool({ connectionString: postgres.url, connectionTimeoutMillis: 5000 })
          const { jobs, applications, migrate } = postgresStores({ pool, schema })
          if (worker === 0) await migrate()
          const settings = {
            dispatch: { concurrency: 2, sweepIntervalMs: 1000 },
            checkpoints: { afterMs: 0, everyMs: 2000 },
          }
          return { pool, jobs, ...testEngine(workflow, settings, { jobs, applications, blobs, queue: memoryQueue() }) }
        }),
      )
      // Some jobs end while the server is away, some later; the last worker is idle and takes any job that it may.
      const given = [outageSeconds / 2, outageSeconds + 10].flatMap((seconds) =>
        [true, false].map((isKept) => ({ units: unitsOf(seconds), isKept })),
      )
      const jobs: Awaited<ReturnType<(typeof workers)[number]['submit']>>[] = []
      for (const params of given) jobs.push(await workers[0]!.submit(params))
      for (const { engine } of workers) await engine.start()
      const [first] = workers
      while ((await first!.jobs.count({ statuses: ['STARTED'] })) < jobs.length) await sleep(50)
      const isUnderWay = ({ id }: { id: string }) => (done[id]?.length ?? 0) > 0
      while (!jobs.every(isUnderWay) || (await keys(blobs, ['checkpoints/'])).length < 2) await sleep(50)

      await postgres.kill()
      await sleep(outageSeconds * 1000)
      await postgres.start()

      const ended = await Promise.all(
        jobs.map(async ({ id }) => {
          for (;;) {
            const job = await first!.jobs.get(id).catch(() => undefined)
            if (job && job.completedAt !== null) return job
            await sleep(100)
          }
        }),
      )
      expect(ended.map(({ status, attempts, lapses }) => ({ status, attempts, lapses }))).toEqual(
        jobs.map(() => ({ status: 'SUCCEEDED', attempts: 1, lapses: 0 })),
      )
      expect(jobs.map(({ id }) => done[id])).toEqual(given.map(({ units }) => counted(units)))
      for (const [n, { outputs }] of ended.entries())
        expect(JSON.parse(await textOf(blobs, outputs!.count!.key))).toEqual(counted(given[n]!.units))
      await Promise.all(workers.map(({ engine }) => engine.close({ timeoutMs: 0 })))
      await Promise.all(workers.map(({ pool }) => pool.end()))
    },
    (outageSeconds + 120) * 1000,
  )
})
