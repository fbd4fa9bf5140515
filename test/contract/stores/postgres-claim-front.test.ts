import assert from 'node:assert/strict'
import { Pool } from 'pg'
import { afterEach, beforeEach, test, vi } from 'vitest'
import { sampleJob } from '../../../src/contract/job-samples.js'
import { postgresStores } from '../../../src/adapters/postgres.js'
import type { PostgresPool } from '../../../src/adapters/stores/postgres/database.js'
import { describeWith } from '../../servers/found-server.js'
import { findPostgres } from '../../servers/postgres.js'
import { ownSchema } from './postgres-schema.js'

const postgres = await findPostgres()
const worker = { owner: 'worker', leaseMs: 600_000 }

describeWith('many claims of one list in Postgres', { postgres }, ({ postgres: server }) => {
  const { pool, schema } = ownSchema(server)
  const jobsOf = (through: PostgresPool = pool) => postgresStores({ pool: through, schema }).jobs

  beforeEach(async () => {
    await pool.query(`TRUNCATE ${schema}.jobs, ${schema}.turns`)
    // A slow machine must not reach the second after which a list is searched from its beginning.
    vi.useFakeTimers({ toFake: ['performance'] })
  })
  afterEach(() => void vi.useRealTimers())

  test('pass few of the jobs claimed before, although an open transaction keeps their index entries', async () => {
    await jobsOf().createAll(Array.from({ length: 1000 }, () => sampleJob({ app: 'a' })))
    await pool.query(`ANALYZE ${schema}.jobs, ${schema}.turns`)
    const one = new Pool({ connectionString: server.url, max: 1 })
    try {
      // Turns are tidied in a separate transaction, whose end would also end the one in which jobs are claimed.
      const jobs = jobsOf({ query: (query) => one.query(query), connect: () => pool.connect() })
      await one.query('BEGIN')
      const passed: number[] = []
      for (let n = 0; n < 50; n++) {
        assert.equal((await jobs.claimSeveral!(worker, { max: 4 })).length, 4)
        const { rows } = await one.query<{ entries: string }>(
          `SELECT pg_stat_get_xact_tuples_returned('${schema}.jobs_waiting'::regclass) AS entries`,
        )
        passed.push(Number(rows[0]?.entries))
      }
      const ofEach = passed.map((entries, n) => entries - (passed[n - 1] ?? 0))
      assert.ok(ofEach[9]! >= 36, `${ofEach[9]}`)
      const most = Math.max(...ofEach.slice(10))
      assert.ok(most <= 8, `${most}`)
    } finally {
      await one.query('COMMIT')
      await one.end()
    }
  })

  test('find a job of higher priority at once, one given back within a second, and all in the end', async () => {
    const jobs = jobsOf()
    await jobs.createAll(Array.from({ length: 16 }, (_, n) => sampleJob({ app: 'a', id: `job-${10 + n}` })))
    const first = await jobs.claim(worker)
    for (let n = 1; n < 11; n++) await jobs.claim(worker)
    assert.ok(first)
    const giveBack = async () => assert.ok(await jobsOf().apply(first.id, { kind: 'preempt', token: first.token }))
    await giveBack()
    assert.equal((await jobs.claim(worker))?.id, 'job-21')
    await jobs.create(sampleJob({ app: 'a', id: 'urgent', priority: 1 }))
    assert.equal((await jobs.claim(worker))?.id, 'urgent')
    vi.advanceTimersByTime(1000)
    assert.equal((await jobs.claim(worker))?.id, first.id)
    const rest = await jobs.claimSeveral!(worker, { max: 9 })
    assert.deepEqual(
      rest.map(({ id }) => id),
      ['job-22', 'job-23', 'job-24', 'job-25'],
    )
  })
})
