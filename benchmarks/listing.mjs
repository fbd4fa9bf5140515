// Cost of a page of a list, a count and a claim in a Postgres store with 1,000,000 jobs, against one with 1,000. The
// rows are generated in the database. The stores take turns, so that other load on the machine slows both. Options:
// --jobs=N (rows of the large store). Server: DATABASE_URL, else the standard address.
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { Pool } from 'pg'
import { postgresStores } from '../build/adapters/postgres.js'
import { sampleJob } from '../build/contract/job-samples.js'
import { machine, option, printRows } from './shared/benchmark.mjs'

const small = 1000
const large = option('jobs', 1_000_000)
const rounds = 60
const limit = 50
const app = 'app-1'

const pool = new Pool({ connectionString: process.env.DATABASE_URL ?? 'postgres://root@127.0.0.1:5432/test' })
const run = randomUUID().replaceAll('-', '').slice(0, 12)
const schemas = [`benchmark_${run}_small`, `benchmark_${run}_large`]

try {
  await printMachine()
  const startedAt = performance.now()
  const stores = [await filledStore(schemas[0], small), await filledStore(schemas[1], large)]
  printRows([['time to insert the rows', `${Math.round((performance.now() - startedAt) / 1000)} s`]])
  for (const [name, ask] of await questions(stores)) await compare(name, stores, ask)
} finally {
  for (const schema of schemas) await pool.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
  await pool.end()
}

/** Queries that are the same for both stores; `place` is where the next page begins in that store's list. */
async function questions(stores) {
  const middles = new Map()
  for (const { store, total } of stores) {
    const [job] = await store.list({ limit: 1, offset: Math.floor(total / 4), app })
    middles.set(store, job)
  }
  return [
    ['first page of an application', ({ store }) => store.list({ app, limit })],
    ['page by cursor, from the middle', ({ store }) => store.list({ app, limit, after: middles.get(store) })],
    ['first page of a rare status', ({ store }) => store.list({ app, statuses: ['FAILED'], limit })],
    ['first page of a batch', ({ store }) => store.list({ app, batchName: 'batch-0', limit })],
    ['first page of all applications', ({ store }) => store.list({ limit })],
    ['count of an application', ({ store }) => store.count({ app })],
    ['count by status', ({ store }) => store.count({ app, statuses: ['SUCCEEDED'] })],
    ['one job', ({ store }) => store.get(middles.get(store).id)],
    ['jobs that are due for a worker', ({ store }) => store.due('claimable', limit)],
    ['jobs whose results expired', ({ store }) => store.due('expired', limit)],
  ]
}

async function compare(name, stores, ask) {
  const times = stores.map(() => [])
  for (let round = -5; round < rounds; round++) {
    for (const [index, store] of stores.entries()) {
      const startedAt = performance.now()
      await ask(store)
      if (round >= 0) times[index].push(performance.now() - startedAt)
    }
  }
  const [smallMs, largeMs] = times.map((values) => values.sort((a, b) => a - b)[rounds >> 1])
  printRows([
    [
      name,
      `${smallMs.toFixed(2)} ms at ${small} jobs, ${largeMs.toFixed(2)} ms at ${large}: ` +
        `${(largeMs / smallMs).toFixed(2)} (aim: at most 2.00)`,
    ],
  ])
}

/** A store with half of its jobs in the measured application; one in ten failed, and a few are waiting. */
async function filledStore(schema, total) {
  const { jobs: store, migrate } = postgresStores({ pool, schema })
  await migrate()
  const { job } = await store.create(sampleJob({ app, workflow: 'benchmark/nothing' }))
  await store.apply(job.id, { kind: 'delete' })
  await store.purge({ id: job.id })
  const spread = `
    SELECT n, gen_random_uuid()::text AS id, 'app-' || n % 2 AS app,
      CASE WHEN n > ${total} - 20 THEN 'QUEUED' WHEN n % 10 < 2 THEN 'FAILED' ELSE 'SUCCEEDED' END AS status,
      CASE WHEN n % 10 = 1 THEN 'batch-' || n / 10 % 2 END AS batch_name, 1700000000000 + n * 1000::bigint AS at
    FROM generate_series(1, ${total}) AS n`
  await pool.query(
    `WITH spread AS (${spread})
      INSERT INTO ${schema}.jobs (id, version, app, status, deleted, workflow, batch_name, created_at, waiting_since,
        ended_at, record)
      SELECT id, 1, app, status, false, 'benchmark/nothing', batch_name, at, CASE WHEN status = 'QUEUED' THEN at END,
        CASE WHEN status <> 'QUEUED' THEN at END,
        ($1::jsonb || jsonb_build_object('id', id, 'app', app, 'status', status, 'batchName', batch_name, 
          'createdAt', at))::json
      FROM spread ORDER BY n`,
    [JSON.stringify(job)],
  )
  await pool.query(`VACUUM ANALYZE ${schema}.jobs`)
  return { store, total }
}

async function printMachine() {
  const { version } = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8'))
  const { rows } = await pool.query('SHOW server_version')
  printRows([
    ['machine', machine()],
    ['versions', `stemwork ${version}, Node ${process.version}, PostgreSQL ${rows[0].server_version} on this machine`],
    ['input', `pages of ${limit} jobs; half of the jobs belong to the application; median of ${rounds} rounds`],
  ])
}
