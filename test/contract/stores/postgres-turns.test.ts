import assert from 'node:assert/strict'
import { Pool } from 'pg'
import { beforeEach, test } from 'vitest'
import { sampleJob } from '../../../src/contract/job-samples.js'
import { postgresStores } from '../../../src/adapters/postgres.js'
import type { JobStore } from '../../../src/core/engine/ports/job-store.js'
import {
  countStatement,
  deliverableStatement,
  dueStatement,
  listStatement,
  type Statement,
} from '../../../src/adapters/stores/postgres/job-lists.js'
import { tidyTurns } from '../../../src/adapters/stores/postgres/turns.js'
import { describeWith } from '../../servers/found-server.js'
import { findPostgres } from '../../servers/postgres.js'
import { ownSchema } from './postgres-schema.js'

const postgres = await findPostgres()
const worker = { owner: 'worker', leaseMs: 600_000 }

describeWith('turns in Postgres', { postgres }, ({ postgres: server }) => {
  const { pool, schema } = ownSchema(server, { max: 30 })
  const jobsOf = () => postgresStores({ pool, schema }).jobs

  beforeEach(async () => void (await pool.query(`TRUNCATE ${schema}.jobs, ${schema}.turns`)))

  const numberOf = async (text: string) =>
    Number((await pool.query<{ count: string }>(`SELECT count(*) FROM ${text}`)).rows[0]!.count)
  const waitingWithoutTurn = () =>
    numberOf(
      `${schema}.jobs j WHERE waiting_since IS NOT NULL AND NOT EXISTS (SELECT FROM ${schema}.turns t WHERE t.app ` +
        '= j.app AND t.workflow = j.workflow AND t.pool = j.pool)',
    )

  test('creates, claims, ends and the queue are functions, planned once, never compiled, made if missing', async () => {
    const counting = new Pool({ connectionString: server.url, options: '-c track_functions=all' })
    const { jobs } = postgresStores({ pool: counting, schema })
    const run = async () => {
      await jobs.create(sampleJob({ app: 'a' }), { maxQueued: 9 })
      const job = await jobs.claim(worker)
      assert.ok(job)
      const ends = { outputs: {}, details: {}, retentionMs: 1000, messages: [] }
      const nonce = job.lease?.nonce
      assert.ok(await jobs.apply(job.id, { kind: 'succeed', token: job.token, nonce, ...ends }))
      await jobs.queue?.({ max: 9 })
    }
    const functions = async () => {
      const { rows } = await pool.query<{ oid: string; calls: string }>(
        `SELECT oid::regprocedure::text AS oid, pg_stat_get_function_calls(oid) AS calls FROM pg_proc
        WHERE pronamespace = $1::regnamespace AND prorettype <> 'trigger'::regtype AND 'jit=off' = ANY(proconfig)
        ORDER BY proname`,
        [schema],
      )
      return rows
    }
    await run()
    await run()
    // A connection's counts are visible once it ends.
    await counting.end()
    for (let tries = 0; (await functions()).some(({ calls }) => Number(calls) < 2) && tries < 100; tries++)
      await new Promise((resolve) => setTimeout(resolve, 50))
    assert.deepEqual(
      (await functions()).map(({ oid, calls }) => [oid.replace(/.*\.([a-z_]+)_[0-9a-f]{16}\(.*/, '$1'), Number(calls)]),
      [
        ['add_jobs', 2],
        ['claim_next', 2],
        ['end_claims', 2],
        ['queue_in_turn', 2],
      ],
    )
    for (const { oid } of await functions()) await pool.query(`DROP FUNCTION ${oid}`)
    await Promise.all([1, 2].map(() => jobsOf().create(sampleJob({ app: 'a' }), { maxQueued: 9 })))
    const [first, second] = await Promise.all([jobsOf().claim(worker), jobsOf().claim(worker)])
    assert.ok(first && second && first.id !== second.id)
    assert.equal((await functions()).length, 2)
  })

  test('the queue reads as many jobs as it returns, however many each application has', async () => {
    await pool.query(
      `INSERT INTO ${schema}.jobs (id, version, app, status, deleted, workflow, pool, created_at, waiting_since, record)
      SELECT 'job-' || n, 1, 'app-' || n % 200, 'QUEUED', false, 'w', '', n, n, $1::json
        FROM generate_series(1, 10000) AS n`,
      [JSON.stringify(sampleJob())],
    )
    await pool.query(
      `INSERT INTO ${schema}.turns (app, workflow, pool) SELECT DISTINCT app, workflow, pool FROM ${schema}.jobs`,
    )
    const read = await rowsRead(async (jobs) => assert.equal((await jobs.queue!({ max: 200 })).waiting.length, 200))
    assert.ok(read < 1000, `read ${read} rows`)
  })

  test('no waiting job is ever without a turn while applications become idle, are removed and come back', async () => {
    const jobs = jobsOf()
    const apps = ['a', 'b', 'c']
    let creating = 8
    let claimed = 0
    await Promise.all([
      ...Array.from({ length: creating }, async (_, writer) => {
        for (let n = 0; n < 60; n++) await jobs.create(sampleJob({ app: apps[(writer + n) % 3] }))
        creating--
      }),
      ...Array.from({ length: 4 }, async () => {
        while (creating > 0) {
          const job = await jobs.claim(worker)
          if (!job) continue
          // Each job is retried once, so that turns are also joined by changes.
          if (job.attempts === 1)
            await jobs.apply(job.id, { kind: 'requeue', token: job.token, delayMs: 0, onShutdown: false })
          else claimed++
        }
      }),
      ...Array.from({ length: 3 }, async () => {
        while (creating > 0) await tidyTurns(pool, `"${schema}"`)
      }),
      (async () => {
        while (creating > 0) assert.equal(await waitingWithoutTurn(), 0)
      })(),
    ])
    assert.ok(claimed > 0)
    assert.equal(await waitingWithoutTurn(), 0)
  })

  test('rows of applications without waiting jobs are removed, even if two first creates made one each', async () => {
    const jobs = jobsOf()
    await Promise.all(Array.from({ length: 20 }, () => jobs.create(sampleJob({ app: 'twice' }))))
    for (let n = 0; n < 120; n++) await jobs.create(sampleJob({ app: `single-${n}` }))
    while (await jobs.claim(worker));
    // While its jobs run, an application keeps its place.
    await pool.query(`UPDATE ${schema}.jobs SET status = 'SUCCEEDED'`)
    await tidyTurns(pool, `"${schema}"`)
    await tidyTurns(pool, `"${schema}"`)
    assert.equal(await numberOf(`${schema}.turns`), 0)
  })

  test('applications whose jobs other claims are taking, or that run, are not looked for as idle', async () => {
    let tidyings = 0
    const counting = new Pool({ connectionString: server.url })
    const connect = counting.connect.bind(counting)
    // `query` passes a callback, so tidying opens the only transaction here.
    counting.connect = ((...given: Parameters<typeof connect>) => {
      if (given[0] === undefined) tidyings++
      return connect(...given)
    }) as typeof connect
    const jobs = postgresStores({ pool: counting, schema }).jobs
    for (let n = 0; n < 60; n++) await jobs.create(sampleJob({ app: `taken-${n}` }))
    await jobs.createAll(Array.from({ length: 150 }, () => sampleJob({ app: 'free' })))
    const client = await pool.connect()
    try {
      await client.query('BEGIN')
      await client.query(`SELECT FROM ${schema}.jobs WHERE app <> 'free' FOR UPDATE`)
      const before = tidyings
      for (let n = 0; n < 150; n++) assert.equal((await jobs.claim(worker))?.app, 'free')
      assert.equal(tidyings - before, 1, 'the first look')
    } finally {
      await client.query('COMMIT')
      client.release()
      await counting.end()
    }
  })

  test('an application with two rows has one turn a round', async () => {
    const jobs = jobsOf()
    await pool.query(`INSERT INTO ${schema}.turns (app) VALUES ('a'), ('a'), ('a')`)
    for (const app of ['a', 'a', 'b', 'b']) await jobs.create(sampleJob({ app }))
    const order: (string | undefined)[] = []
    for (let n = 0; n < 4; n++) order.push((await jobs.claim(worker))?.app)
    assert.deepEqual(order, ['a', 'b', 'a', 'b'])
  })

  test('simultaneous claims from several lists of one application get all of its jobs', async () => {
    const jobs = jobsOf()
    for (let round = 0; round < 10; round++) {
      const given = Array.from({ length: 60 }, (_, n) => sampleJob({ app: 'a', workflow: `w${n % 3}`, createdAt: n }))
      await jobs.createAll(given)
      const claims = Array.from({ length: 30 }, () => jobs.claimSeveral!(worker, { max: 2 }))
      const claimed = (await Promise.all(claims)).flat().map(({ id }) => id)
      assert.deepEqual(claimed.sort(), given.map(({ id }) => id).sort())
    }
  })

  test("a host's open transaction makes no create and no claim of its application wait", async () => {
    const jobs = jobsOf()
    const client = await pool.connect()
    try {
      await client.query('BEGIN')
      await jobs.create(sampleJob({ app: 'a' }), { tx: client })
      const { job } = await jobs.create(sampleJob({ app: 'a' }))
      assert.equal((await jobs.claim(worker))?.id, job.id)
      await tidyTurns(pool, `"${schema}"`)
    } finally {
      await client.query('COMMIT')
      client.release()
    }
    assert.equal(await waitingWithoutTurn(), 0)
    assert.equal((await jobs.claim(worker))?.app, 'a')
  })

  test('an application that looks idle keeps its turn while an open transaction makes a job for it', async () => {
    const jobs = jobsOf()
    await jobs.create(sampleJob({ app: 'a' }))
    assert.ok(await jobs.claim(worker))
    const client = await pool.connect()
    try {
      await client.query('BEGIN')
      await jobs.create(sampleJob({ app: 'a' }), { tx: client })
      await tidyTurns(pool, `"${schema}"`)
    } finally {
      await client.query('COMMIT')
      client.release()
    }
    assert.equal(await waitingWithoutTurn(), 0)
  })

  test('a serializable transaction of the host creates jobs while others of its application are claimed', async () => {
    const jobs = jobsOf()
    for (let n = 0; n < 3; n++) await jobs.create(sampleJob({ app: 'a' }))
    const client = await pool.connect()
    try {
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
      await client.query(`SELECT count(*) FROM ${schema}.jobs`)
      await jobs.claim(worker)
      await jobs.claim(worker)
      assert.equal((await jobs.create(sampleJob({ app: 'a' }), { tx: client })).created, true)
    } finally {
      await client.query('COMMIT')
      client.release()
    }
    assert.equal(await waitingWithoutTurn(), 0)
  })

  /** Number of rows that a claim by a worker with these labels reads. */
  const rowsReadByClaim = (labels = ['cpu'], lapsedBefore?: number) =>
    rowsRead((jobs) => jobs.claim({ ...worker, workflows: ['w'], labels, lapsedBefore }))

  /** Number of rows that the work reads, as Postgres counts them; of jobs, by indexes only. */
  async function rowsRead(work: (jobs: JobStore) => Promise<unknown>, options?: string): Promise<number> {
    await pool.query(`ANALYZE ${schema}.jobs, ${schema}.turns`)
    const one = new Pool({ connectionString: server.url, max: 1, options })
    const read = async () => {
      const { rows } = await one.query<{ rows: string; scans: string }>(
        `SELECT sum(seq_tup_read + idx_tup_fetch) AS rows, sum(seq_scan) FILTER (WHERE relname = 'jobs') AS scans
        FROM pg_stat_xact_user_tables WHERE schemaname = $1`,
        [schema],
      )
      assert.equal(Number(rows[0]?.scans), 0)
      return Number(rows[0]?.rows)
    }
    try {
      await one.query('BEGIN')
      await work(postgresStores({ pool: one, schema }).jobs)
      return await read()
    } finally {
      await one.query('COMMIT')
      await one.end()
    }
  }

  test('a claim passes none of the jobs that are for other workers, however many wait before its own', async () => {
    await pool.query(
      `INSERT INTO ${schema}.jobs (id, version, app, status, deleted, workflow, pool, created_at, waiting_since, record)
      SELECT 'job-' || n, 1, 'app', 'QUEUED', false, 'w', CASE WHEN n < 5000 THEN 'gpu' ELSE '' END, n, n, '{}'
        FROM generate_series(1, 5000) AS n`,
    )
    await pool.query(`INSERT INTO ${schema}.turns (app) VALUES ('app')`)
    assert.ok((await rowsReadByClaim()) < 100)
    const claimed = await pool.query(`SELECT id FROM ${schema}.jobs WHERE status = 'STARTED'`)
    assert.deepEqual(claimed.rows, [{ id: 'job-5000' }])
  })

  test('a claim for a rare list passes none of ten thousand applications that wait in others', async () => {
    await pool.query(
      `INSERT INTO ${schema}.jobs (id, version, app, status, deleted, workflow, pool, created_at, waiting_since, record)
      SELECT 'job-' || n, 1, 'app-' || n, 'QUEUED', false, 'w', CASE WHEN n < 10000 THEN 'cpu' ELSE 'cpu rare' END, n,
        n, '{}' FROM generate_series(1, 10000) AS n`,
    )
    await pool.query(`INSERT INTO ${schema}.turns (app, workflow, pool) SELECT app, workflow, pool FROM ${schema}.jobs`)

    await pool.query(`UPDATE ${schema}.jobs SET workflow = 'other' WHERE pool = 'cpu'`)
    await pool.query(`UPDATE ${schema}.turns SET workflow = 'other' WHERE pool = 'cpu'`)
    assert.ok((await rowsReadByClaim(['cpu', 'rare'])) < 100)
    const claimed = await pool.query(`SELECT id FROM ${schema}.jobs WHERE status = 'STARTED'`)
    assert.deepEqual(claimed.rows, [{ id: 'job-10000' }])
  })

  test('applications that only run jobs are passed once, and keep their place', async () => {
    await pool.query(
      `INSERT INTO ${schema}.jobs (id, version, app, status, deleted, workflow, pool, created_at, waiting_since,
        lease_until, record)
      SELECT 'job-' || n, 1, 'app-' || n, CASE WHEN n <= 150 THEN 'STARTED' ELSE 'QUEUED' END, false, 'w',
        CASE WHEN n % 2 = 0 THEN 'cpu' ELSE '' END, n, CASE WHEN n > 150 THEN n END,
        CASE WHEN n <= 150 THEN 4000000000000 END, $1
      FROM generate_series(1, 5000) AS n`,
      [sampleJob({ workflow: 'w' })],
    )
    await pool.query(
      `INSERT INTO ${schema}.turns (app, workflow, pool, served)
      SELECT app, workflow, pool, created_at FROM ${schema}.jobs`,
    )
    await rowsReadByClaim()
    const read = await rowsReadByClaim()
    assert.ok(read < 100, `${read}`)
    const { jobs } = postgresStores({ pool, schema })
    for (const app of ['app-150', 'app-7', 'new']) await jobs.create(sampleJob({ app, workflow: 'w' }))
    const order: (string | undefined)[] = []
    for (let n = 0; n < 3; n++) order.push((await jobs.claim(worker))?.app)
    assert.deepEqual(order, ['new', 'app-7', 'app-150'])
    await pool.query(`UPDATE ${schema}.jobs SET status = 'SUCCEEDED', waiting_since = NULL`)
    for (let n = 0; n < 3; n++) await tidyTurns(pool, `"${schema}"`)
    assert.equal(await numberOf(`${schema}.turns WHERE served <= 150`), 0)
  })

  test('a claim passes none of the jobs whose workers have still time to come back after an outage', async () => {
    const minuteAgo = Date.now() - 60_000
    await pool.query(
      `INSERT INTO ${schema}.jobs (id, version, app, status, deleted, workflow, created_at, lease_until, record)
      SELECT 'job-' || n, 1, 'app', 'STARTED', false, 'w', n, $1, '{}' FROM generate_series(1, 5000) AS n`,
      [minuteAgo],
    )
    assert.ok((await rowsReadByClaim(['cpu'], minuteAgo - 120_000)) < 100)
  })

  test('jobs of a batch are listed and counted without its application, and without reading others', async () => {
    await pool.query(
      `INSERT INTO ${schema}.jobs (id, version, app, status, deleted, workflow, batch_name, created_at, record)
      SELECT 'job-' || n, 1, 'app-' || n % 7, 'SUCCEEDED', false, 'w', 'batch-' || n / 10, n, $1
      FROM generate_series(1, 20000) AS n`,
      [sampleJob()],
    )
    await pool.query(`ANALYZE ${schema}.jobs`)
    // Counts all pages read: a search through a whole index reads no row of other applications.
    const pagesOf = async (statement: Statement | undefined, found: number) => {
      assert.ok(statement)
      const { rowCount } = await pool.query(statement.text, statement.values)
      assert.equal(rowCount, found)
      const { rows } = await pool.query<{ 'QUERY PLAN': [{ Plan: Record<string, number> }] }>(
        `EXPLAIN (ANALYZE, BUFFERS, FORMAT json) ${statement.text}`,
        statement.values,
      )
      const plan = rows[0]!['QUERY PLAN'][0].Plan
      return plan['Shared Hit Blocks']! + plan['Shared Read Blocks']!
    }
    const query = { batchName: 'batch-500' }
    const page = await pagesOf(listStatement(`"${schema}"`, { ...query, limit: 8 }), 8)
    const count = await pagesOf(countStatement(`"${schema}"`, query), 1)
    assert.ok(page < 200 && count < 200, `${page} and ${count} pages`)
  })

  test('a job is found that an older node entered into another list than that of the row', async () => {
    const jobs = jobsOf()
    const { job } = await jobs.create(sampleJob({ app: 'a' }))
    await pool.query(`UPDATE ${schema}.turns SET workflow = 'other'`)
    assert.equal((await jobs.claim(worker))?.id, job.id)
  })

  test('a claim passes no application where nothing waits for its worker or all is for later', async () => {
    await pool.query(
      `INSERT INTO ${schema}.jobs (id, version, app, status, deleted, workflow, pool, created_at, waiting_since, record)
      SELECT 'job-' || n, 1, 'app-' || n, 'QUEUED', false, 'w', CASE WHEN n % 2 = 0 THEN 'gpu' ELSE '' END, n,
        CASE WHEN n % 2 = 0 THEN n ELSE 4000000000000 END, '{}'
      FROM generate_series(1, 5000) AS n`,
    )
    await pool.query(`INSERT INTO ${schema}.turns (app) SELECT app FROM ${schema}.jobs`)
    assert.ok((await rowsReadByClaim()) < 100)
    assert.equal((await pool.query(`SELECT FROM ${schema}.jobs WHERE status = 'STARTED'`)).rowCount, 0)
  })

  test('a plan that serves the lists of all applications reads few jobs of one that has many', async () => {
    await pool.query(
      `INSERT INTO ${schema}.jobs (id, version, app, status, deleted, workflow, created_at, record)
      SELECT 'job-' || n, 1, CASE WHEN n % 2 = 0 THEN 'large' ELSE 'app-' || n END, 'SUCCEEDED', false, 'w', n, $1
      FROM generate_series(1, 20000) AS n`,
      [sampleJob()],
    )
    const [app, limit, after] = ['large', 8, { createdAt: 19_000, id: 'job-19000' }]
    const read = await rowsRead(async (jobs) => {
      for (const query of [{}, { statuses: ['SUCCEEDED'] as const }, { workflows: ['w'] }])
        for (const page of [{}, { after }]) assert.equal((await jobs.list({ app, limit, ...query, ...page })).length, 8)
      assert.equal((await jobs.list({ limit, after })).length, 8)
    }, '-c plan_cache_mode=force_generic_plan')
    assert.ok(read < 1000, `read ${read} rows`)
  })

  test('statements that workers and the sweep send read jobs by indexes only', async () => {
    await pool.query(
      `INSERT INTO ${schema}.jobs (id, version, app, status, deleted, workflow, created_at, waiting_since, lease_until,
        ended_at, removable_at, deliverable_at, record)
      SELECT 'job-' || n, 1, 'app-' || n % 500, status, false, 'w', n, CASE status WHEN 'QUEUED' THEN n END,
        CASE status WHEN 'STARTED' THEN 4e12::bigint END,
        CASE status WHEN 'SUCCEEDED' THEN n END, CASE status WHEN 'SUCCEEDED' THEN 4e12::bigint + n END, NULL, $1
      FROM (SELECT n, CASE WHEN n % 100 = 0 THEN 'STARTED' WHEN n % 2 = 0 THEN 'SUCCEEDED' ELSE 'QUEUED' END AS status
        FROM generate_series(1, 20000) AS n) AS numbered`,
      [sampleJob()],
    )
    await pool.query(
      `INSERT INTO ${schema}.turns (app) SELECT app FROM ${schema}.jobs WHERE waiting_since IS NOT NULL GROUP BY app`,
    )
    await rowsReadByClaim()
    const quoted = `"${schema}"`
    const statements = {
      lapsed: dueStatement(quoted, 'lapsed', 100, []),
      expired: dueStatement(quoted, 'expired', 100, []),
      deliverable: deliverableStatement(quoted, { limit: 100, perApp: 5, exceptApps: ['app-3'] }, []),
      deleted: dueStatement(quoted, 'deleted', 100, []),
      'count of an application': countStatement(quoted, { app: 'app-1', statuses: ['QUEUED'] }),
      'page of an application': listStatement(quoted, { app: 'app-1', limit: 20 }),
      'page of a search': listStatement(quoted, { app: 'app-1', search: 'a song', limit: 20 }),
    }
    for (const [name, statement] of Object.entries(statements)) {
      assert.ok(statement)
      const { rows } = await pool.query<{ 'QUERY PLAN': string }>(`EXPLAIN ${statement.text}`, statement.values)
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
      assert.match(plan, /Index/, name)
      assert.doesNotMatch(plan, /Seq Scan on jobs/, `${name}\n${plan}`)
    }
    // Conditions on the time narrow the search rather than filter its results.
    const { rows } = await pool.query<{ 'QUERY PLAN': string }>(
      `EXPLAIN ${statements.expired.text}`,
      statements.expired.values,
    )
    assert.match(rows.map((row) => row['QUERY PLAN']).join('\n'), /Index Cond: .*removable_at <= /)
    // Nor does the search for lapsed leases, which each claim makes, pass the running jobs.
    const { rows: lapsed } = await pool.query<{ 'QUERY PLAN': string }>(
      `EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) ${statements.lapsed.text}`,
      statements.lapsed.values,
    )
    const plan = lapsed.map((row) => row['QUERY PLAN']).join('\n')
    assert.match(plan, /Index Cond: .*lease_bucket <= /)
    assert.doesNotMatch(plan, /Rows Removed/)
  })
})
