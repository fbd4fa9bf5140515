import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'pg'
import { afterAll, test } from 'vitest'
import { memoryBlobs } from '../../../src/adapters/memory.js'
import { postgresQueue, postgresStores } from '../../../src/adapters/postgres.js'
import { JobEngine } from '../../../src/core/engine/engine.js'
import { StemworkError } from '../../../src/core/engine/errors.js'
import { inlineRunner } from '../../../src/core/engine/runner/inline-runner.js'
import { textWorkflow } from '../../engine/harness.js'
import { describeWith } from '../../servers/found-server.js'
import { startPostgres } from '../../servers/postgres.js'

describeWith('engines on one Postgres and nothing else', { postgres: await startPostgres() }, ({ postgres }) => {
  afterAll(() => postgres.release())

  test('workers are woken by the submits of another engine, not by their sweep, and share a burst', async () => {
    const schema = `test_${randomUUID().replaceAll('-', '')}`
    const blobs = { ...memoryBlobs(), traits: { scope: 'shared' as const } }
    const workflow = textWorkflow(() => sleep(50))
    const nodes = Array.from({ length: 3 }, () => {
      const pool = new Pool({ connectionString: postgres.url })
      const { jobs, applications, migrate } = postgresStores({ pool, schema })
      const engine = new JobEngine(
        {
          jobs,
          applications,
          blobs,
          queue: postgresQueue({ pool, schema }),
          runner: inlineRunner({ resolve: () => workflow }),
          workflows: [workflow],
        },
        { dispatch: { concurrency: 2, sweepIntervalMs: 3_600_000 } },
      )
      return { pool, engine, jobs, migrate }
    })
    const [front, ...workers] = nodes
    assert.ok(front)
    await front.migrate()
    const runs = new Map<string, number[]>()
    for (const [index, { engine }] of workers.entries())
      engine.on('job.started', ({ job }) => void runs.set(job.id, [...(runs.get(job.id) ?? []), index]))
    await Promise.all(workers.map(({ engine }) => engine.start()))
    const submit = async () => (await front.engine.submit({ app: 'app', workflow: workflow.id, params: {} })).job.id
    const ids = [await submit()]
    const succeeded = () => front.jobs.count({ statuses: ['SUCCEEDED'] })
    while ((await succeeded()) < 1) await sleep(20)
    ids.push(...(await Promise.all(Array.from({ length: 60 }, submit))))
    while ((await succeeded()) < 61) await sleep(20)
    assert.deepEqual([...runs.keys()].sort(), [...ids].sort())
    assert.ok([...runs.values()].every((owners) => owners.length === 1))
    assert.equal(new Set([...runs.values()].flat()).size, 2)
    await Promise.all(nodes.map(({ engine }) => engine.close()))
    await Promise.all(nodes.map(({ pool }) => pool.end()))
  })

  test('a connection that is lost inside a transaction is an error, not the end of the process', async () => {
    const schema = `test_${randomUUID().replaceAll('-', '')}`
    const pool = new Pool({ connectionString: postgres.url, application_name: 'lost' })
    const admin = new Pool({ connectionString: postgres.url })
    const holder = await admin.connect()
    await holder.query('BEGIN')
    // Holds the lock of this schema's migrations, so that the next migration waits inside its transaction.
    await holder.query('SELECT pg_advisory_xact_lock($1::int, hashtext($2))', [0x57e3, `"${schema}"`])
    const refused = assert.rejects(postgresStores({ pool, schema }).migrate(), (error) => StemworkError.is(error))
    const ended = () =>
      admin.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'lost' AND wait_event = " +
          "'advisory'",
      )
    while ((await ended()).rowCount === 0) await sleep(10)
    await refused
    await holder.query('ROLLBACK')
    holder.release()
    await Promise.all([pool.end(), admin.end()])
  })
})
