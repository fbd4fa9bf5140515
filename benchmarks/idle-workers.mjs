// What many idle workers cost one Postgres, without Redis, and what a lone job costs them: statements a second while
// nothing happens; and for lone jobs, the claims of all workers and the time from submission to start. The workers are
// engines of their own, each with a listening connection, in a few processes. Exit status 1 above the limits. Options:
// --workers=N, --processes=N, --settle=S (seconds until all know their number), --idle=S, --jobs=N. Server:
// DATABASE_URL, which has to allow a connection for each worker and 50 more (`max_connections`).
import { fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'pg'
import { createEngine } from '../dist/index.js'
import { fsBlobs } from '../dist/adapters/blobs/fs/index.js'
import { postgresQueue, postgresStores } from '../dist/adapters/postgres.js'
import { nothing } from './nothing.mjs'

const databaseUrl = process.env.DATABASE_URL ?? 'postgres://root@127.0.0.1:5432/test'
const workers = number('workers', 1000)
const processes = number('processes', 4)
const settleSeconds = number('settle', 150)
const idleSeconds = number('idle', 120)
const jobs = number('jobs', 100)
const limits = { statementsPerSecond: 60, claimsPerJob: 4, startMs: 250 }
/** Starts are spread out, so that workers do not poll in step. */
const startsPerSecond = 50

const pool = new Pool({ connectionString: databaseUrl, max: 4 })
const schema = `idle_${randomUUID().replaceAll('-', '')}`
const folder = await mkdtemp(join(tmpdir(), 'stemwork-idle-'))
const children = []
try {
  const { jobs: store, applications, migrate } = postgresStores({ pool, schema })
  await migrate()
  console.log(
    `${cpus()[0]?.model.trim()}, ${availableParallelism()} processors, load ${loadavg()[0].toFixed(1)}, Node ` +
      `${process.version}; ${workers} workers in ${processes} processes`,
  )
  for (let index = 0; index < processes; index++)
    children.push(
      fork(join(import.meta.dirname, 'idle-workers', 'workers.mjs'), [
        databaseUrl,
        schema,
        folder,
        String(Math.ceil(workers / processes)),
        String((1000 * processes) / startsPerSecond),
      ]),
    )
  await Promise.all(children.map((child) => once(child, 'message')))
  const queue = postgresQueue({ pool, schema })
  const submitter = createEngine({
    jobs: store,
    applications,
    blobs: fsBlobs({ directory: folder }),
    queue,
    workflows: [nothing],
  })
  await sleep(settleSeconds * 1000)

  const before = await counts()
  await sleep(idleSeconds * 1000)
  const idle = difference(await counts(), before)
  const perSecond = idle.statements / idleSeconds
  console.log(`idle: ${perSecond.toFixed(1)} statements a second (claims ${(idle.claims / idleSeconds).toFixed(1)})`)

  const starts = []
  const begun = await counts()
  const beganAt = performance.now()
  for (let index = 0; index < jobs; index++) {
    const { job } = await submitter.submit({ app: 'lone', workflow: nothing.id, params: {} })
    let ended
    while (!(ended = await store.get(job.id))?.completedAt) await sleep(50)
    starts.push(ended.startedAt - ended.createdAt)
    // Lets the workers that were notified last finish their claims.
    await sleep(250)
  }
  const seconds = (performance.now() - beganAt) / 1000
  const claims = (difference(await counts(), begun).claims - (idle.claims / idleSeconds) * seconds) / jobs
  starts.sort((a, b) => a - b)
  const at = (share) => starts[Math.min(starts.length - 1, Math.floor(starts.length * share))]
  console.log(`lone job: ${claims.toFixed(1)} claims; starts after ${at(0.5)} ms (median), ${at(0.99)} ms (p99)`)
  if (perSecond > limits.statementsPerSecond) miss(`more than ${limits.statementsPerSecond} statements a second`)
  if (claims > limits.claimsPerJob) miss(`more than ${limits.claimsPerJob} claims for a lone job`)
  if (at(0.99) > limits.startMs) miss(`a lone job starts after more than ${limits.startMs} ms`)
  await submitter.close()
} finally {
  for (const child of children) child.send('stop')
  await Promise.all(children.map((child) => once(child, 'exit')))
  await pool.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
  await pool.end()
  await rm(folder, { recursive: true, force: true })
}

async function counts() {
  const all = await Promise.all(
    children.map(async (child) => {
      const answer = once(child, 'message')
      child.send('count')
      return (await answer)[0]
    }),
  )
  return {
    statements: all.reduce((sum, { statements }) => sum + statements, 0),
    claims: all.reduce((sum, { claims }) => sum + claims, 0),
  }
}

function difference(after, before) {
  return { statements: after.statements - before.statements, claims: after.claims - before.claims }
}

function miss(what) {
  console.log(`missed: ${what}`)
  process.exitCode = 1
}

function number(name, fallback) {
  const given = process.argv.find((argument) => argument.startsWith(`--${name}=`))
  return Number(given?.split('=')[1] ?? fallback)
}
