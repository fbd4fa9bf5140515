// The service, in its own process: an engine over SQLite or Postgres, and a key for each application.
import { createEngine } from '../../dist/index.js'
import { sqliteStores } from '../../dist/adapters/stores/sqlite/index.js'
import { fsBlobs } from '../../dist/adapters/blobs/fs/index.js'
import { createApplication, createHandler, issueKey } from '../../dist/http/index.js'
import { serve } from '../../dist/http/mounts/node.js'
import { keepHeapRoom } from '../../build/cli/service/heap-room.js'
import { execFileSync } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { workflows } from './workflows.mjs'

keepHeapRoom()
const [folder, storeUrl, applications] = process.argv.slice(2)
const { jobs, applications: store } = await openStores()
const engine = createEngine({
  jobs,
  applications: store,
  blobs: fsBlobs({ directory: join(folder, 'blobs') }),
  scratchDirectory: join(folder, 'scratch'),
  workflows,
  // Inputs and receivers are on this machine.
  fetch: { allow: ['127.0.0.0/8'] },
  dispatch: { concurrency: 4 },
  logger: { debug() {}, info() {}, warn() {}, error: (fields, text) => console.error(text, fields) },
})
const handler = createHandler(engine, { secrets: ['x'.repeat(32)], resumableUploads: true })
// All connections come from one address here, as behind a proxy.
const server = await serve(handler, { maxConnections: 5000, maxConnectionsPerAddress: 5000 })
await engine.start()
const keys = []
for (let n = 0; n < Number(applications); n++) {
  const { id } = await createApplication(store, { name: `app-${n}` })
  keys.push((await issueKey(store, id)).key)
}

if (process.env.STEMWORK_BENCHMARK_REAL_TIME) demoteCollector()

let peak = process.memoryUsage()
setInterval(() => {
  if (process.memoryUsage.rss() > peak.rss) peak = process.memoryUsage()
}, 50).unref()
const delay = monitorEventLoopDelay({ resolution: 1 })
delay.enable()
process.on('message', (what) => {
  if (what === 'exit') process.exit()
  const { user, system } = process.cpuUsage()
  const loopMs = delay.percentile(99) / 1e6
  process.send({ peak, cpuMs: (user + system) / 1000, waitedMs: waitedMs(), loopMs })
  peak = process.memoryUsage()
  delay.reset()
})
process.on('disconnect', () => process.exit())
process.send({ base: `http://127.0.0.1:${server.port}`, keys })

/**
 * Lowers V8's own threads below the main thread. At the same real-time priority, they would keep both CPUs from it
 * until the heap is swept (10 ms), which the scheduler for normal priorities does not allow.
 */
function demoteCollector() {
  const threads = readdirSync('/proc/self/task')
    .map(Number)
    .sort((a, b) => a - b)
  // The main thread comes first, then V8's five threads, then those of libuv.
  for (const id of threads.slice(1, 6)) execFileSync('chrt', ['--rr', '--pid', '1', String(id)])
}

/** Time that the main thread was runnable without a CPU (Linux), in milliseconds. */
function waitedMs() {
  try {
    return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6
  } catch {
    return NaN
  }
}

async function openStores() {
  if (storeUrl === '') return sqliteStores({ path: join(folder, 'jobs.db') })
  const { Pool } = await import('pg')
  const { postgresStores } = await import('../../dist/adapters/postgres.js')
  const stores = postgresStores({ pool: new Pool({ connectionString: storeUrl, max: 10 }) })
  await stores.migrate()
  return stores
}
