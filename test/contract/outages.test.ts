import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'pg'
import { afterAll, expect, test } from 'vitest'
import { memoryQueue } from '../../src/adapters/queues/memory/memory-queue.js'
import { memoryBlobs } from '../../src/adapters/memory.js'
import { postgresStores } from '../../src/adapters/postgres.js'
import { gate, testEngine, textWorkflow } from '../engine/harness.js'
import { describeWith } from '../servers/found-server.js'
import { startPostgres } from '../servers/postgres.js'
import { startSilentProxy } from '../servers/silent-proxy.js'

const leaseMs = 1000
const outageMs = 3.5 * leaseMs

describeWith('outages of Postgres longer than the lease', { postgres: await startPostgres() }, ({ postgres }) => {
  afterAll(() => postgres.release())

  /** Workers, each with its own connection, of which the last is idle; and jobs without checkpoints. */
  async function deployment(workers: number) {
    const schema = `test_${randomUUID().replaceAll('-', '')}`
    const blobs = memoryBlobs()
    const runs: { jobId: string; worker: number; signal: AbortSignal }[] = []
    const finish = new Map<string, ReturnType<typeof gate>>()
    const nodes = await Promise.all(
      Array.from({ length: workers }, async (_, worker) => {
        const proxy = await startSilentProxy(postgres.url)
        // Hanging calls keep their connections.
        const pool = new Pool({ connectionString: proxy.url, max: 40, connectionTimeoutMillis: 500 })
        const { jobs, applications, migrate } = postgresStores({ pool, schema })
        if (worker === 0) await migrate()
        const workflow = textWorkflow(async ({ jobId, signal }) => {
          runs.push({ jobId, worker, signal })
          const aborted = new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
          await Promise.race([finish.get(jobId)?.opened, aborted])
        })
        const shared = { ...blobs, traits: { scope: 'shared' } as const }
        const settings = { dispatch: { leaseMs, sweepIntervalMs: 200 } }
        const { engine } = testEngine(workflow, settings, { jobs, applications, blobs: shared, queue: memoryQueue() })
        return { proxy, pool, jobs, engine }
      }),
    )
    const [first] = nodes
    if (!first) throw new Error('There is no worker.')
    const ids: string[] = []
    for (let n = 0; n < workers - 1; n++) {
      const { job } = await first.engine.submit({ app: 'app', workflow: 'test/text', params: {} })
      finish.set(job.id, gate())
      ids.push(job.id)
    }
    for (const [n, { engine }] of nodes.entries()) {
      await engine.start()
      while (runs.length < Math.min(n + 1, ids.length)) await sleep(20)
    }
    // After this time, each worker may judge leases.
    await sleep(2 * leaseMs)
    const found = () => Promise.all(ids.map((id) => first.jobs.get(id)))
    return {
      nodes,
      ids,
      runs,
      found,
      finish: (id: string | undefined) => finish.get(id ?? '')?.open(undefined),
      async ended() {
        while ((await found()).some((job) => job?.completedAt === null)) await sleep(50)
        return (await found()).map((job) => [job?.status, job?.attempts, job?.lapses])
      },
      async close() {
        // Hanging calls end only after twenty seconds.
        for (const { proxy } of nodes) proxy.cut()
        await Promise.all(nodes.map(({ engine }) => engine.close({ timeoutMs: 0 })))
        await Promise.all(nodes.map(({ proxy }) => proxy.close()))
        await Promise.all(nodes.map(({ pool }) => pool.end()))
      },
    }
  }

  const outages = {
    async 'the server is stopped'() {
      await postgres.kill()
      return () => postgres.start()
    },
    async 'no client reaches the server, which runs'(nodes: Awaited<ReturnType<typeof deployment>>['nodes']) {
      for (const { proxy } of nodes) void proxy.silence()
      return async () => {
        for (const { proxy } of nodes) proxy.speak()
      }
    },
  }

  test.each(Object.keys(outages) as (keyof typeof outages)[])(
    '%s: no job is run again, and what ended meanwhile is recorded',
    async (name) => {
      const { nodes, ids, runs, finish, ended, close } = await deployment(3)
      const restore = await outages[name](nodes)
      await sleep(outageMs / 2)
      finish(ids[0])
      await sleep(outageMs / 2)
      await restore()
      // Time for the idle worker to take any job that it may.
      await sleep(2.5 * leaseMs)
      finish(ids[1])
      expect(await ended()).toEqual(ids.map(() => ['SUCCEEDED', 1, 0]))
      expect(runs.map(({ jobId }) => jobId).sort()).toEqual(ids.toSorted())
      expect(runs.some(({ signal }) => signal.aborted)).toBe(false)
      await close()
    },
    60_000,
  )

  test('a database that is only read, as after a failover or with a full disk, makes its nodes unready', async () => {
    const schema = `test_${randomUUID().replaceAll('-', '')}`
    const pool = new Pool({ connectionString: postgres.url })
    const reading = new Pool({ connectionString: postgres.url, options: '-c default_transaction_read_only=on' })
    const engineOf = (of: Pool) =>
      testEngine(textWorkflow(), {}, { ...postgresStores({ pool: of, schema }), blobs, queue: memoryQueue() }).engine
    const blobs = { ...memoryBlobs(), traits: { scope: 'shared' } as const }
    await postgresStores({ pool, schema }).migrate()
    const engines = [engineOf(pool), engineOf(reading)]
    const [well, unready] = await Promise.all(engines.map((engine) => engine.health()))
    expect(well).toMatchObject({ ok: true, problems: [] })
    expect(unready).toMatchObject({ ok: false, problems: [expect.stringMatching(/^The job store takes no changes\./)] })
    const { rows } = await pool.query(`SELECT kind FROM ${schema}.documents`)
    expect(rows).toEqual([])
    await Promise.all(engines.map((engine) => engine.close()))
    await Promise.all([pool.end(), reading.end()])
  })

  test('a worker that alone is cut off is replaced, and stops when it learns of it', async () => {
    const { nodes, ids, runs, finish, ended, close } = await deployment(2)
    void nodes[0]?.proxy.silence()
    while (runs.length < 2) await sleep(50)
    expect(runs.map(({ worker }) => worker)).toEqual([0, 1])
    expect(runs[0]?.signal.aborted).toBe(false)
    nodes[0]?.proxy.speak()
    while (!runs[0]?.signal.aborted) await sleep(50)
    finish(ids[0])
    expect(await ended()).toEqual([['SUCCEEDED', 1, 1]])
    expect(runs).toHaveLength(2)
    await close()
  }, 60_000)
})
