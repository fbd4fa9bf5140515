// Cost of a search of the library: GET /job?search= of an application with 10,000 finished songs, beside as many
// waiting jobs of other applications, as a page of the console requests it (15 rows). For each store: the time to the
// end of the response (median and slowest of 20) and its bytes. Options: --jobs=N. Postgres: DATABASE_URL, else the
// standard address; skipped if there is none.
import { mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { Pool } from 'pg'
import { postgresStores } from '../build/adapters/postgres.js'
import { sqliteStores } from '../build/adapters/stores/sqlite/index.js'
import { sampleJob, sampleOutputs, succeed } from '../build/contract/job-samples.js'
import { createApplication, createHandler, issueKey } from '../build/http/index.js'
import { memoryApplications, memoryBlobs, memoryJobs } from '../build/adapters/memory.js'
import { createEngine } from '../build/index.js'
import { inlineRunner } from '../build/testing/index.js'
import { nothing } from './nothing.mjs'

const total = Number(process.argv.find((text) => text.startsWith('--jobs='))?.slice('--jobs='.length) ?? 10_000)
const rounds = 20
const words = 'Łódź Noc Don’t Stop Über Río Été Ørsted Blue Train Kind Night River Song Fire Rain Sun Moon Road Home'
const searches = {
  'a song': 'lodz 4720',
  'two words of many': 'noc train',
  'one letter': 'o',
  nothing: 'no such song',
}

console.log(`${cpus()[0]?.model}, ${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(2)}, ${total} songs`)
const folder = await mkdtemp(join(tmpdir(), 'stemwork-benchmark-'))
const pool = new Pool({ connectionString: process.env.DATABASE_URL ?? 'postgres://root@127.0.0.1:5432/test' })
const schema = `benchmark_search_${process.pid}`
try {
  await measure('memory', { jobs: memoryJobs(), applications: memoryApplications() })
  const sqlite = sqliteStores({ path: join(folder, 'jobs.db') })
  await measure('SQLite', sqlite)
  sqlite.close()
  const hasPostgres = await pool.query('SELECT 1').then(
    () => true,
    () => false,
  )
  if (hasPostgres) {
    const { migrate, ...stores } = postgresStores({ pool, schema })
    await migrate()
    await measure('Postgres', stores)
  }
} finally {
  await pool.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`).catch(() => {})
  await pool.end()
  await rm(folder, { recursive: true })
}

async function measure(name, { jobs, applications }) {
  const engine = createEngine({
    workflows: [nothing],
    jobs,
    applications,
    blobs: memoryBlobs(),
    runner: inlineRunner({ resolve: () => nothing }),
  })
  const rateLimits = { status: { requests: 1e9, perSeconds: 1 }, other: { requests: 1e9, perSeconds: 1 } }
  const handler = createHandler(engine, { basePath: '/v1', rateLimits })
  const app = await createApplication(engine.applications, { name: 'benchmark' })
  const { key } = await issueKey(engine.applications, app.id)
  await fill(jobs, app.id)
  for (const [what, search] of Object.entries(searches)) {
    const url = `http://127.0.0.1/v1/job?size=15&search=${encodeURIComponent(search)}`
    const times = []
    let bytes = 0
    let found = 0
    for (let round = -3; round < rounds; round++) {
      const startedAt = performance.now()
      const answer = await handler(new Request(url, { headers: { authorization: key } }))
      const body = await answer.arrayBuffer()
      if (answer.status !== 200) throw new Error(`The list answered ${answer.status}.`)
      if (round >= 0) times.push(performance.now() - startedAt)
      bytes = body.byteLength
      found = Number(answer.headers.get('x-total-count'))
    }
    times.sort((a, b) => a - b)
    const [middle, last] = [times[rounds >> 1], times[rounds - 1]].map((ms) => `${ms.toFixed(1)} ms`)
    console.log(`${name}, ${what}: ${middle}, at most ${last}, ${(bytes / 1000).toFixed(1)} kB, ${found} songs`)
  }
  await engine.close()
}

/** Creates finished songs of the application and waiting jobs of another. */
async function fill(jobs, app) {
  const names = words.split(' ')
  const pick = (n) => names[n % names.length]
  for (let n = 0; n < total; n += 500) {
    const made = Array.from({ length: Math.min(500, total - n) }, (_, index) => {
      const number = n + index
      const title = [pick(number), pick(Math.floor(number / 7)), pick(number * 13), number].join(' ')
      return sampleJob({ app, name: `${title}.flac`, workflow: nothing.id, uploads: { inputUrl: `uploads/${number}` } })
    })
    await jobs.createAll(made)
    await Promise.all(made.map(({ id }) => finish(jobs, id)))
    await jobs.createAll(made.map(({ name }) => sampleJob({ app: 'other', name, workflow: nothing.id })))
  }
}

async function finish(jobs, id) {
  const claimed = await jobs.claim({ id, owner: 'benchmark', leaseMs: 60_000 })
  const { vocals } = sampleOutputs(id, claimed.token)
  const outputs = { vocals, accompaniment: { ...vocals, key: `${vocals.key}2`, fileName: 'accompaniment.wav' } }
  const details = { model: 'basic', version: 'a'.repeat(64), seconds: 215, engine: 'wasm', threads: 4 }
  await jobs.apply(id, succeed(claimed, { outputs, details, retentionMs: 1e9 }))
}
