// How long large requests of one application block the event loop, and how long a small request of another waits
// meanwhile. The requests: lists, an archive, the state of a running batch, searches and bulk deletes of large jobs in
// a SQLite file, all in parallel; and reading the queue for an estimate, while 200 applications have 200 jobs waiting
// each. The delay is that of node:perf_hooks, sampled every millisecond, less its resolution. Options: --jobs=N,
// --parallel=N (of each request).
import { mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createEngine } from '../dist/index.js'
import { createApplication, createHandler, issueKey } from '../dist/http/index.js'
import { sqliteStores } from '../dist/adapters/stores/sqlite/index.js'
import { newJob } from '../dist/adapter/index.js'
import { option } from './shared/benchmark.mjs'

const jobs = option('jobs', 1000)
const parallel = option('parallel', 4)
const resolution = 1

const folder = await mkdtemp(join(tmpdir(), 'stemwork-event-loop-'))
const stores = sqliteStores({ path: join(folder, 'stemwork.db') })
const engine = createEngine({ jobs: stores.jobs, applications: stores.applications, limits: { maxQueuedJobs: 1e6 } })
const handler = createHandler(engine, {
  basePath: '/v1',
  rateLimits: { create: false, status: false, other: false },
})
try {
  const [busy, other] = [await keyOf('busy'), await keyOf('other')]
  const ids = await fill('busy')
  const [mine] = await fill('other', 1)
  const machine = `${cpus()[0]?.model}, ${availableParallelism()} threads, load ${loadavg()[0].toFixed(1)}`
  console.log(`${machine}, Node ${process.version}`)
  console.log(`${jobs} jobs of about 50 KB, ${parallel} requests of each kind at once`)
  await measure('nothing else', other, mine, () => new Promise((resolve) => setTimeout(resolve, 2000)))
  // The largest number of large jobs that one list may hold.
  await measure('lists of 38', other, mine, () => many(() => ask(busy, '/job?size=38')))
  await measure('archives of a batch', other, mine, () => many(() => ask(busy, '/archive?batchName=batch')))
  for (const id of ids.slice(0, 100)) await stores.jobs.claim({ id, owner: 'benchmark', leaseMs: 3_600_000 })
  await measure('states of a batch', other, mine, () => many(() => ask(busy, '/batch?name=batch')))
  await measure('searches by the host', other, mine, () => many(() => engine.search({ limit: 50 }, () => false)))
  await measure('bulk deletes of 250', other, mine, () =>
    many(() => ask(busy, '/job/delete', { all: true, limit: Math.ceil(ids.length / parallel) })),
  )
  for (let n = 0; n < 200; n++)
    await stores.jobs.createAll(Array.from({ length: 200 }, () => jobOf(`app-${n}`, { params: {}, metadata: {} })))
  await measure('looks at the queue', other, mine, async () => {
    for (let n = 0; n < 20; n++) {
      await stores.jobs.queue({ max: 200 })
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  })
} finally {
  await engine.close()
  stores.close()
  await rm(folder, { recursive: true })
}

async function measure(name, key, id, work) {
  const delay = monitorEventLoopDelay({ resolution })
  const waits = []
  let isDone = false
  delay.enable()
  const asking = (async () => {
    while (!isDone) {
      const startedAt = performance.now()
      await ask(key, `/job/${id}/status`)
      waits.push(performance.now() - startedAt)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  })()
  const startedAt = performance.now()
  await work()
  const tookMs = performance.now() - startedAt
  isDone = true
  await asking
  delay.disable()
  waits.sort((one, other) => one - other)
  const ms = (nanoseconds) => Math.max(0, nanoseconds / 1e6 - resolution).toFixed(1)
  console.log(
    `${name.padEnd(22)} event loop blocked p99 ${ms(delay.percentile(99))} ms, max ${ms(delay.max)} ms (aim: 10); ` +
      `another job's status p95 ${waits[Math.floor(waits.length * 0.95)].toFixed(1)} ms, ` +
      `longest ${waits.at(-1).toFixed(1)} ms; took ${Math.round(tookMs)} ms`,
  )
}

async function many(work) {
  await Promise.all(Array.from({ length: parallel }, work))
}

async function ask(key, path, body) {
  const response = await handler(
    new Request(`http://localhost/v1${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { authorization: key, 'content-type': 'application/json' },
      body: body && JSON.stringify(body),
    }),
  )
  // Chunks are not joined: in production, the client's work does not block the service's event loop.
  for await (const chunk of response.body) void chunk
  if (response.status !== 200 && response.status !== 404) throw new Error(`${path}: ${response.status}`)
}

async function keyOf(app) {
  await createApplication(engine.applications, { id: app, name: app })
  return (await issueKey(engine.applications, app, { label: null })).key
}

/** Creates jobs with the largest records that a client can make with params and metadata. */
async function fill(app, count = jobs) {
  const metadata = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`key-${n}`, 'x'.repeat(500)]))
  const made = []
  for (let n = 0; n < count; n++) {
    const params = { text: 'y'.repeat(16_000), more: n }
    const { job } = await stores.jobs.create(jobOf(app, { params, metadata, batchName: 'batch' }))
    made.push(job.id)
  }
  return made
}

function jobOf(app, facts) {
  const none = { uploads: {}, copyResultsTo: {}, batchName: null, name: null, webhook: null, idempotency: null }
  return newJob({ app, workflow: 'benchmark/nothing', ...none, ...facts })
}
