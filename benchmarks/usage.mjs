// Cost of a month's totals on Postgres if 1,000,000 jobs of 50 applications and four workflows ended in it, with one
// day still in progress. The rows are generated in the database. Options: --jobs=N. Server: DATABASE_URL, else the
// standard address.
import { randomUUID } from 'node:crypto'
import { cpus, loadavg } from 'node:os'
import { Pool } from 'pg'
import { postgresStores } from '../dist/adapters/postgres.js'

const jobs = Number(process.argv.find((one) => one.startsWith('--jobs='))?.slice('--jobs='.length) ?? 1_000_000)
const days = 30
const rounds = 40
const dayMs = 86_400_000

const pool = new Pool({ connectionString: process.env.DATABASE_URL ?? 'postgres://root@127.0.0.1:5432/test' })
const schema = `benchmark_${randomUUID().replaceAll('-', '').slice(0, 12)}`
const { jobs: store, migrate } = postgresStores({ pool, schema })
try {
  await migrate()
  const today = Math.floor((await store.time()) / dayMs)
  await pool.query(
    `INSERT INTO ${schema}.ledger (id, app, workflow, ended_at, succeeded, audio_seconds, bytes, processor_seconds,
      entry)
    SELECT gen_random_uuid() || '/0', 'app-' || n % 50, 'service/workflow-' || n % 4,
      ($1::bigint - n % $2) * ${dayMs} + n % 3600000, 1, 212.4, 37480044, 8.5, '{}'
    FROM generate_series(1, $3::bigint) AS n ORDER BY 4`,
    [today, days, jobs],
  )
  const tidied = await timed(() => store.ledger.tidy({ keepFromDay: 0 }))
  await pool.query(`ANALYZE ${schema}.ledger`)
  const month = { fromDay: today - days + 1, toDay: today }
  const [all] = await store.ledger.totals(month, [])
  if (all.jobs !== jobs) throw new Error(`the totals have ${all.jobs} jobs of ${jobs}`)
  console.log(`${cpus()[0]?.model}, load ${loadavg()[0]?.toFixed(1)}, ${jobs} jobs of ${days} days`)
  console.log(`sums of past days, once: ${tidied.toFixed(0)} ms\n`)
  for (const [what, query, groupBy] of [
    ['one application, one sum', { ...month, app: 'app-1' }, []],
    ['one application, by day and workflow', { ...month, app: 'app-1' }, ['day', 'workflow']],
    ['all applications, by application', month, ['app']],
    ['all applications, by day', month, ['day']],
  ]) {
    const times = []
    for (let round = 0; round < rounds; round++) times.push(await timed(() => store.ledger.totals(query, groupBy)))
    times.sort((a, b) => a - b)
    const at = (share) => times[Math.floor(share * (rounds - 1))].toFixed(1).padStart(6)
    console.log(`${what.padEnd(40)} median ${at(0.5)} ms, p95 ${at(0.95)} ms`)
  }
} finally {
  await pool.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
  await pool.end()
}

async function timed(work) {
  const begun = performance.now()
  await work()
  return performance.now() - begun
}
