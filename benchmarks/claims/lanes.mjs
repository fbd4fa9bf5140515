// One process of benchmarks/claims.mjs: four lanes of jobs that do nothing; reports how many jobs have ended.
// Arguments: the system (`stemwork` or the file of graphile-worker), the database, the schema, a folder.
import { Pool } from 'pg'

const lanes = 4
/** Connections of each process: those of sixteen processes stay below a server's default of a hundred. */
const connections = 5
/** Interval of reports. One takes 0.3 ms of CPU time, here and in the parent: frequent ones would slow the jobs. */
const reportedEveryMs = 100
const [system, connectionString, schema, folder] = process.argv.slice(2)
const pool = new Pool({ connectionString, max: connections })
pool.on('error', () => {})

let ended = 0
let told = 0
const count = () => ended++
const stop = await (system === 'stemwork' ? startEngine() : startPeer())
process.send({ ended: 0, cpu: 0 })
setInterval(() => {
  if (ended === told) return
  const { user, system } = process.cpuUsage()
  process.send({ ended: (told = ended), cpu: (user + system) / 1000 })
}, reportedEveryMs)
process.once('message', () => void end())
// The parent ended early.
process.once('disconnect', () => process.exit(1))

async function end() {
  await stop()
  await pool.end()
  process.exit()
}

async function startEngine() {
  const { createEngine } = await import('../../dist/index.js')
  const { inlineRunner } = await import('../../dist/testing/index.js')
  const { postgresQueue, postgresStores } = await import('../../dist/adapters/postgres.js')
  const { fsBlobs } = await import('../../dist/adapters/blobs/fs/index.js')
  const { nothing } = await import('../nothing.mjs')
  const { jobs, applications } = postgresStores({ pool, schema })
  const engine = createEngine({
    jobs,
    applications,
    blobs: fsBlobs({ directory: folder }),
    queue: postgresQueue({ pool, schema }),
    workflows: [nothing],
    runner: inlineRunner({ resolve: () => nothing }),
    dispatch: { concurrency: lanes },
  })
  engine.on('job.succeeded', count)
  await engine.start()
  return () => engine.close()
}

async function startPeer() {
  const { run } = await import(system)
  const runner = await run({
    pgPool: pool,
    schema,
    concurrency: lanes,
    noHandleSignals: true,
    logger: await quiet(),
    taskList: { nothing: count },
  })
  return () => runner.stop()
}

async function quiet() {
  const { Logger } = await import(system)
  return new Logger(() => () => {})
}
