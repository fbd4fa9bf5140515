// Time of each statement of the Postgres store at 1,000 and at a million jobs of 10,000 applications, nine in ten of
// them queued. The rows are generated in the database. The aim is a ratio of 2 at most; a statement that reads up to
// 10,000 rows, of which the small store has only 1,000, may take 50 ms. A claim may take 0.5 ms per job on top of the
// time of SELECT 1. Exit status 1 if an aim is missed. Options: --jobs=N, --rounds=N. Server: DATABASE_URL, else the
// standard address.
import { randomUUID } from 'node:crypto'
import { availableParallelism, cpus, loadavg } from 'node:os'
import { Pool } from 'pg'
import { cancel, sampleJob } from '../build/contract/job-samples.js'
import { postgresStores } from '../build/adapters/postgres.js'
import { middle, option } from './shared/benchmark.mjs'

const databaseUrl = process.env.DATABASE_URL ?? 'postgres://root@127.0.0.1:5432/test'
const large = option('jobs', 1_000_000)
const rounds = option('rounds', 200)
const small = 1000
const jobsPerApplication = 100
const worker = { owner: 'benchmark', leaseMs: 3_600_000 }

const pool = new Pool({ connectionString: databaseUrl, max: 4 })
const {
  rows: [{ server_version: version }],
} = await pool.query('SHOW server_version')
console.log(
  `${cpus()[0]?.model.trim()}, ${availableParallelism()} processors, load ${loadavg()[0].toFixed(1)}, PostgreSQL ` +
    `${version}, ${rounds} rounds\n`,
)
/** Statements that read up to 10,000 rows. */
const capped = new Set([
  'page 100, the last by number',
  'total of the largest application',
  'queued of all, for a health check',
  'backlog of all',
])
/** Number of jobs of each claim. */
const claims = new Map([
  ['claim the next', 1],
  ['claim the next four', 4],
  ['claim for labels', 1],
  ['claim of a rare pool', 1],
  ['claim of any of two lists', 1],
])
const sides = []
try {
  for (const total of [small, large]) sides.push(await filled(total))
  // Alternating, so that other load on the machine slows both.
  const times = sides.map(() => new Map())
  for (let round = -20; round < rounds; round++) {
    for (const [side, { statements }] of sides.entries()) {
      for (const [name, run] of Object.entries(statements)) {
        const startedAt = performance.now()
        await run(round)
        if (round < 0) continue
        const samples = times[side].get(name) ?? []
        times[side].set(name, [...samples, performance.now() - startedAt])
      }
    }
  }
  const missed = []
  console.log(`${'statement, median'.padEnd(36)} ${String(small).padStart(10)} ${String(large).padStart(10)}  ratio`)
  for (const name of times[0].keys()) {
    const [a, b] = times.map((map) => middle(map.get(name)))
    const isMet = capped.has(name) ? b <= 50 : b / a <= 2
    if (!isMet) missed.push(name)
    const claimMs = (b - middle(times[1].get('SELECT 1'))) / (claims.get(name) ?? Infinity)
    if (claimMs > 0.5) missed.push(`${name}: ${claimMs.toFixed(2)} ms a job, not 0.5`)
    console.log(
      `${name.padEnd(36)} ${`${a.toFixed(2)} ms`.padStart(10)} ` +
        `${`${b.toFixed(2)} ms`.padStart(10)}  ${(b / a).toFixed(2)}` +
        `${capped.has(name) ? ' (capped)' : ''}${isMet ? '' : ' missed'}`,
    )
  }
  for (const name of missed) console.log(`missed: ${name}`)
  if (missed.length > 0) process.exitCode = 1
} finally {
  for (const { schema } of sides) await pool.query(`DROP SCHEMA ${schema} CASCADE`)
  await pool.end()
}

async function filled(total) {
  const schema = `scale_${randomUUID().replaceAll('-', '')}`
  const { jobs: store, migrate } = postgresStores({ pool, schema })
  await migrate()
  const applications = total / jobsPerApplication
  const startedAt = performance.now()
  // Indexes are created after the rows, which is faster than keeping them up to date.
  const { rows: indexes } = await pool.query(
    `SELECT indexname AS name, indexdef AS definition FROM pg_indexes WHERE schemaname = $1 AND tablename = 'jobs' ` +
      `AND indexname <> 'jobs_pkey'`,
    [schema],
  )
  for (const { name } of indexes) await pool.query(`DROP INDEX ${schema}.${name}`)
  // One application has a tenth of all jobs; results expire and messages are due far in the future.
  const spread = `
    SELECT n, gen_random_uuid()::text AS id, 
      CASE WHEN n % 10 = 5 THEN 'app-0' ELSE 'app-' || n % ${applications} END AS app,
      CASE WHEN n <= 100 THEN 'STARTED' WHEN n % 10 = 0 THEN 'SUCCEEDED' ELSE 'QUEUED' END AS status,
      1700000000000 + n AS at, 4000000000000 + n AS far
    FROM generate_series(1, ${total}) AS n`
  const template = { ...sampleJob(), createdAt: 0 }
  await pool.query(
    `INSERT INTO ${schema}.jobs (id, version, app, status, deleted, workflow, created_at, waiting_since, lease_until,
      ended_at, removable_at, result_bytes, deliverable_at, record)
    SELECT id, 1, app, status, false, 'service/sample', at, CASE status WHEN 'QUEUED' THEN at END,
      CASE status WHEN 'STARTED' THEN far END,
      CASE status WHEN 'SUCCEEDED' THEN at END, CASE status WHEN 'SUCCEEDED' THEN far END, 
      CASE status WHEN 'SUCCEEDED' THEN 1000 END, CASE status WHEN 'SUCCEEDED' THEN far END,
      ($1::jsonb || jsonb_build_object('id', id, 'app', app, 'status', status, 'createdAt', at))::json
    FROM (${spread}) AS spread`,
    [JSON.stringify(template)],
  )
  for (const { definition } of indexes) await pool.query(definition)
  await pool.query(
    `INSERT INTO ${schema}.turns (app, workflow, pool)
    SELECT DISTINCT app, workflow, pool FROM ${schema}.jobs WHERE waiting_since IS NOT NULL`,
  )
  await pool.query(`VACUUM ANALYZE ${schema}.jobs, ${schema}.turns`)
  console.log(`${total} jobs inserted in ${((performance.now() - startedAt) / 1000).toFixed(1)} s`)
  // Not the largest application, whose queue is full.
  const app = (round) => `app-${1 + (Math.abs(round * 7919) % (applications - 1))}`
  let claimed
  const statements = {
    create: (round) => store.create(sampleJob({ app: app(round) })),
    'create with an idempotency key': (round) =>
      store.create(sampleJob({ app: app(round), idempotency: { key: randomUUID(), digest: 'd' } })),
    'create within a quota': (round) => store.create(sampleJob({ app: app(round) }), { maxQueued: 1000 }),
    'keyed create within a quota': (round) =>
      store.create(sampleJob({ app: app(round), idempotency: { key: randomUUID(), digest: 'd' } }), {
        maxQueued: 1000,
      }),
    'SELECT 1': () => pool.query('SELECT 1'),
    'claim the next': async () => void (claimed = await store.claim(worker)),
    heartbeat: () =>
      store.apply(claimed.id, {
        kind: 'heartbeat',
        token: claimed.token,
        leaseMs: 3_600_000,
        progress: 0.5,
        stage: 's',
      }),
    'retry later': () =>
      store.apply(claimed.id, { kind: 'requeue', token: claimed.token, delayMs: 3_600_000, onShutdown: false }),
    get: () => store.get(claimed.id),
    'page of an application': (round) => store.list({ app: app(round), limit: 20 }),
    'page of the largest application': () => store.list({ app: 'app-0', limit: 20 }),
    'page of all': () => store.list({ limit: 20 }),
    'page of an absent workflow': () => store.list({ app: 'app-0', workflows: ['service/none'], limit: 20 }),
    'page of an absent batch': () => store.list({ app: 'app-0', batchName: 'none', limit: 20 }),
    'page of an absent status in a workflow': () =>
      store.list({ app: 'app-0', workflows: ['service/sample'], statuses: ['FAILED'], limit: 20 }),
    'page 100, the last by number': () => store.list({ app: 'app-0', limit: 100, offset: 10_000 }),
    'total of the largest application': () => store.count({ app: 'app-0' }, { max: 10_000 }),
    'total of an absent workflow': () => store.count({ app: 'app-0', workflows: ['service/none'] }, { max: 10_000 }),
    'queued of all, for a health check': () => store.count({ statuses: ['QUEUED'] }, { max: 10_000 }),
    'queued of an application': (round) => store.count({ app: app(round), statuses: ['QUEUED'] }),
    'stored bytes of an application': (round) => store.resultBytes(app(round)),
    'running of all': () => store.count({ statuses: ['STARTED'] }),
    'lapsed leases': () => store.due('lapsed', 100),
    'expired results': () => store.due('expired', 100),
    'webhook messages': () => store.deliverable({ limit: 50, perApp: 50, exceptApps: [] }),
    'deleted jobs': () => store.due('deleted', 100),
    'create within a quota of the day': (round) =>
      store.create(sampleJob({ app: app(round) }), { quota: { jobs: 1e9 } }),
    'create 20 at once': (round) =>
      store.createAll(
        Array.from({ length: 20 }, () => sampleJob({ app: app(round) })),
        { maxQueued: 1e6 },
      ),
    'cancel and retry': async (round) => {
      const { job } = await store.create(sampleJob({ app: app(round) }))
      await store.apply(job.id, cancel())
      await store.apply(job.id, { kind: 'retry', maxQueued: 1e6, quota: { jobs: 1e9 } })
    },
    'usage of an application': (round) => store.usage(app(round)),
    'claim for labels': async () => void (claimed = await store.claim({ ...worker, labels: ['gpu'] })),
    'create for a rare pool': (round) =>
      store.create(sampleJob({ app: app(round), workflow: 'service/rare', pool: 'rare' })),
    'claim of a rare pool': async () => {
      const claimed = await store.claim({ ...worker, workflows: ['service/rare'], labels: ['rare'] })
      if (claimed?.pool !== 'rare') throw new Error('The job of the rare pool was not found.')
    },
    'claim of any of two lists': () => store.claim({ ...worker, workflows: ['service/rare', 'service/sample'] }),
    'claim the next four': () => store.claimSeveral(worker, { max: 4 }),
    'backlog of all': () => store.backlog(),
    'open jobs of a batch': () =>
      store.count({ app: 'app-0', batchName: 'none', statuses: ['QUEUED', 'STARTED'] }, { max: 1 }),
    'report of a worker': (round) =>
      store.documents.put({ kind: 'worker', key: `w${Math.abs(round) % 50}`, value: { round }, ttlMs: 60_000 }),
    'read a document': () => store.documents.get('worker', 'w1'),
    'due documents': () => store.documents.due('batch', 100),
    'list of workers': () => store.documents.list('worker', { limit: 1000 }),
    'expired documents': () => store.documents.removeExpired(100),
    'old records': () => store.purge({ endedBefore: 1, limit: 100 }),
  }
  return { schema, statements }
}
