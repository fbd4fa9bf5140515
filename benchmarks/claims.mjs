// Jobs per second of one, four and sixteen processes with four lanes each on one Postgres, for one application and for
// fifty, beside graphile-worker's. The jobs do nothing and are queued beforehand, so claims and ends are measured.
// Every number is the median of the rounds; the systems take turns, so that other load slows both. Below each rate
// stands the CPU time per job in milliseconds, which other load changes less: of the server (if it runs on this
// machine) and of the workers.
// Exit status 1 where stemwork is slower than graphile-worker, or slower than with fewer processes. graphile-worker is
// installed into a temporary folder when the benchmark runs; --no-peer leaves it out.
// Options: --jobs=N, --rounds=N, --warm-up=N (jobs of each process before timing begins), --processes=1,4,16,
// --applications=1,50. Server: DATABASE_URL, else the standard address; its tables should be on a disk, as in
// production.
import { execFileSync, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { Pool } from 'pg'
import { postgresQueue, postgresStores } from '../build/adapters/postgres.js'
import { sampleJob } from '../build/contract/job-samples.js'
import { middle } from './shared/benchmark.mjs'

const databaseUrl = process.env.DATABASE_URL ?? 'postgres://root@127.0.0.1:5432/test'
const jobs = numbers('jobs', '24000')[0]
const rounds = numbers('rounds', '3')[0]
const processes = numbers('processes', '1,4,16')
const applications = numbers('applications', '1,50')
const peerVersion = '0.16.6'
/** Jobs per INSERT, which has to finish within 20 s even on a busy machine. */
const createdAtOnce = 4000
/**
 * Jobs of each process before timing begins. V8 compiles hot functions after some thousand calls: with sixteen
 * processes and 2,000 jobs each, its compilers still take a fifth of two processors.
 */
const warmUpJobs = numbers('warm-up', '10000')[0]
/** A rate below this share of another counts as slower; runs vary by as much. */
const tolerance = 0.9
let postmaster

const pool = new Pool({ connectionString: databaseUrl, max: 4 })
const folder = await mkdtemp(join(tmpdir(), 'stemwork-claims-'))
try {
  const peer = process.argv.includes('--no-peer') ? undefined : installedPeer()
  const {
    rows: [{ server_version: version }],
  } = await pool.query('SHOW server_version')
  console.log(
    `${cpus()[0]?.model.trim()}, ${availableParallelism()} processors, load ${loadavg()[0].toFixed(1)}, Node ` +
      `${process.version}, PostgreSQL ${version}; ${jobs} jobs, ${rounds} rounds\n`,
  )
  postmaster = await postmasterHere()
  console.log(`${'jobs/s, median'.padEnd(32)} ${processes.map((count) => `${count} proc.`.padStart(9)).join(' ')}`)
  const sides = applications.map((count) => ({ name: `stemwork, ${plural(count, 'application')}`, count }))
  if (peer) sides.push({ name: `graphile-worker ${peerVersion}`, file: peer })
  for (const side of sides) side.runs = processes.map(() => [])
  for (let round = 0; round < rounds; round++)
    for (const [index, count] of processes.entries())
      for (const side of sides)
        side.runs[index].push(await (side.file ? peerRate(side.file, count) : ownRate(side.count, count)))
  for (const side of sides) {
    const row = (name, of, digits) => {
      const medians = side.runs.map((runs) => middle(runs.map(of)))
      console.log(`${name.padEnd(32)} ${medians.map((value) => value.toFixed(digits).padStart(9)).join(' ')}`)
      return medians
    }
    side.medians = row(side.name, ({ rate }) => rate, 0)
    row('  server, ms', ({ server }) => server, 2)
    row('  workers, ms', ({ workers }) => workers, 2)
  }
  const missed = []
  const anchor = sides.find(({ file }) => file)
  for (const { name, file, medians } of sides) {
    if (file) continue
    for (const [index, rate] of medians.entries()) {
      const where = `${name}, ${plural(processes[index], 'process', 'processes')}`
      if (anchor && rate < tolerance * anchor.medians[index]) missed.push(`${where}: slower than graphile-worker`)
      if (index > 0 && rate < tolerance * medians[index - 1]) missed.push(`${where}: slower than with fewer`)
    }
  }
  for (const line of missed) console.log(`missed: ${line}`)
  if (missed.length > 0) process.exitCode = 1
} finally {
  await pool.end()
  await rm(folder, { recursive: true, force: true })
}

async function ownRate(applicationCount, processCount) {
  const schema = newSchema()
  const { jobs: store, migrate } = postgresStores({ pool, schema })
  await migrate()
  const queue = postgresQueue({ pool, schema })
  try {
    // Workers are started, connected and idle before the first job can be claimed.
    await store.changeRule({ kind: 'deployment' }, { state: 'paused' })
    return await rate('stemwork', { schema, processCount }, async (count) => {
      for (let app = 0; app < applicationCount; app++)
        for (let left = Math.ceil(count / applicationCount); left > 0; left -= createdAtOnce)
          await store.createAll(
            Array.from({ length: Math.min(left, createdAtOnce) }, () =>
              sampleJob({ app: `app-${app}`, workflow: 'benchmark/nothing', params: {} }),
            ),
          )
      await pool.query(`ANALYZE ${schema}.jobs`)
      return async () => {
        await store.changeRule({ kind: 'deployment' }, { state: 'open' })
        await queue.notify()
      }
    })
  } finally {
    await queue.close()
    await pool.query(`DROP SCHEMA ${schema} CASCADE`)
  }
}

async function peerRate(file, processCount) {
  const schema = newSchema()
  const { makeWorkerUtils } = await import(file)
  const utils = await makeWorkerUtils({ pgPool: pool, schema })
  await utils.migrate()
  try {
    return await rate(file, { schema, processCount }, async (count) => {
      const client = await pool.connect()
      await client.query('BEGIN')
      for (let left = count; left > 0; left -= createdAtOnce)
        await client.query(
          `SELECT count(*) FROM ${schema}.add_jobs(ARRAY(
            SELECT ('nothing', json_build_object('i', i), NULL, NULL, NULL, NULL, NULL, NULL)::${schema}.job_spec
            FROM generate_series(1, $1) AS i))`,
          [Math.min(left, createdAtOnce)],
        )
      await client.query(`ANALYZE ${schema}._private_jobs`)
      return async () => {
        await client.query('COMMIT')
        client.release()
      }
    })
  } finally {
    await utils.release()
    await pool.query(`DROP SCHEMA ${schema} CASCADE`)
  }
}

/** Jobs per second, from when all jobs can be claimed and the warm-up jobs (for compilers, query plans) have ended. */
async function rate(system, { schema, processCount }, fill) {
  const children = Array.from({ length: processCount }, () =>
    fork(join(import.meta.dirname, 'claims', 'lanes.mjs'), [system, databaseUrl, schema, join(folder, schema)]),
  )
  await Promise.all(children.map((child) => once(child, 'message')))
  const open = await fill(jobs + warmUpJobs * processCount)
  const warmUp = warmUpJobs * processCount
  const told = new Map()
  const sum = (of) => [...told.values()].reduce((total, each) => total + of(each), 0)
  const now = () => ({
    at: performance.now(),
    ended: sum(({ ended }) => ended),
    workers: sum(({ cpu }) => cpu),
    server: serverTime(),
  })
  let started
  const ended = new Promise((resolve, reject) => {
    for (const child of children) {
      child.on('message', (message) => {
        told.set(child, message)
        const all = sum(({ ended }) => ended)
        if (all >= warmUp) started ??= now()
        if (all < warmUp + jobs) return
        const end = now()
        const perJob = (what) => (end[what] - started[what]) / (end.ended - started.ended)
        resolve({ rate: 1000 / perJob('at'), server: perJob('server'), workers: perJob('workers') })
      })
      child.once('exit', (code) => reject(new Error(`A process exited with ${code}.`)))
    }
  })
  await open()
  const result = await ended
  await Promise.all(
    children.map((child) => {
      const exited = once(child, 'exit')
      child.send('stop')
      return exited
    }),
  )
  return result
}

/** The server's main process, if it is on this machine and reports its id. */
async function postmasterHere() {
  try {
    const { rows } = await pool.query(`SELECT pg_read_file('postmaster.pid') AS lines`)
    const [pid, directory] = rows[0].lines.split('\n')
    return readlinkSync(`/proc/${pid}/cwd`) === directory ? pid : undefined
  } catch {
    return undefined
  }
}

/** CPU time of the server's processes so far, in milliseconds; NaN if the server runs on another machine. */
function serverTime() {
  if (!postmaster) return NaN
  const stat = (pid) => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').pop().split(' ')
  const ticks = (pid) => {
    try {
      const [, , , , , , , , , , , user, system] = stat(pid)
      return Number(user) + Number(system)
    } catch {
      // The process has ended, such as an autovacuum worker.
      return 0
    }
  }
  const running = readFileSync(`/proc/${postmaster}/task/${postmaster}/children`, 'utf8').trim().split(' ')
  const ofRunning = running.map(ticks).reduce((a, b) => a + b, 0)
  // The postmaster's count includes processes that have ended.
  const [, , , , , , , , , , , , , user, system] = stat(postmaster)
  return (ofRunning + Number(user) + Number(system)) * 10
}

/** Installs the peer: only this comparison needs it, and it adds 68 packages, so it is no dependency. */
function installedPeer() {
  execFileSync('npm', ['install', '--no-save', '--no-audit', '--no-fund', `graphile-worker@${peerVersion}`], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return createRequire(join(folder, 'index.js')).resolve('graphile-worker')
}

function newSchema() {
  return `claims_${randomUUID().replaceAll('-', '')}`
}

function plural(count, one, many = `${one}s`) {
  return `${count} ${count === 1 ? one : many}`
}

function numbers(name, fallback) {
  const given = process.argv.find((argument) => argument.startsWith(`--${name}=`))
  return (given?.split('=')[1] ?? fallback).split(',').map(Number)
}
