// Jobs per second through the engine: Postgres alone compared with Postgres + BullMQ, and the engine compared with the
// bare queue under it, which is BullMQ, or p-queue for the memory adapters. The workflow does nothing, so this measures
// the cost of a durable, leased, fenced job; real jobs last seconds to minutes, so some hundreds a second are more than
// enough. Both sides take turns, so that other load on the machine slows both. Options: --jobs=N, --rounds=N,
// --no-memory. Servers: DATABASE_URL and REDIS_URL, else the standard addresses.
import { randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import PQueue from 'p-queue'
import { Pool } from 'pg'
import { bullmqQueue } from '../dist/adapters/queues/bullmq/index.js'
import { fsBlobs } from '../dist/adapters/blobs/fs/index.js'
import { postgresQueue, postgresStores } from '../dist/adapters/postgres.js'
import { createEngine } from '../dist/index.js'
import { inlineRunner } from '../dist/testing/index.js'
import { nothing } from './nothing.mjs'
import { machine, option, printRows } from './shared/benchmark.mjs'

const databaseUrl = process.env.DATABASE_URL ?? 'postgres://root@127.0.0.1:5432/test'
const redisUrl = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379'
const jobs = option('jobs', 5000)
const rounds = option('rounds', 5)
const submitters = 256
const concurrency = 256

await printMachine()
const missing = await missingServer()
if (missing) printRows([['Postgres + BullMQ', `skipped: ${missing}`]])
else {
  const withBullmq = 'Postgres + BullMQ, engine'
  await compare('Postgres alone, engine', await postgresEngine(), withBullmq, await bullmqEngine(), 500)
  await compare(withBullmq, await bullmqEngine(), 'bare BullMQ', await bareBullmq(), 500)
}
if (!process.argv.includes('--no-memory')) {
  await compare('memory, engine', await memoryEngine(), 'bare p-queue', pQueue(), 5000)
  // For orientation: an engine's job has a time limit and can be aborted; this is what both cost in p-queue.
  await compare(
    'memory, engine',
    await memoryEngine(),
    'p-queue with timeout and signal',
    pQueue({ isInterruptible: true }),
  )
}

/** Both sides are rates of jobs; `aim` applies to the rate of `engine`. */
async function compare(name, engine, otherName, other, aim) {
  const samples = []
  // The first rounds warm up compilers, connections and tables.
  for (let round = -2; round < rounds; round++) {
    const order = round % 2 === 0 ? [engine, other] : [other, engine]
    const rates = new Map()
    for (const side of order) rates.set(side, await rate(side))
    if (round >= 0) samples.push({ engine: rates.get(engine), other: rates.get(other) })
  }
  await engine.close()
  await other.close()
  const middle = (values) => values.sort((a, b) => a - b)[values.length >> 1]
  const perSecond = (value) => `${Math.round(value)} jobs/s`
  printRows([
    [
      name,
      perSecond(middle(samples.map((sample) => sample.engine))) + (aim === undefined ? '' : ` (aim: at least ${aim})`),
    ],
    [otherName, perSecond(middle(samples.map((sample) => sample.other)))],
    ['ratio, median of the rounds', middle(samples.map((sample) => sample.engine / sample.other)).toFixed(2)],
    [
      'ratio, each round',
      samples
        .map((sample) => (sample.engine / sample.other).toFixed(2))
        .sort()
        .join(' '),
    ],
  ])
}

/** Jobs per second from the first submission to the end of the last job. */
async function rate({ submit, ended }) {
  const startedAt = performance.now()
  const all = ended(jobs)
  let left = jobs
  await Promise.all(
    Array.from({ length: submitters }, async () => {
      while (left-- > 0) await submit()
    }),
  )
  await all
  return (jobs / (performance.now() - startedAt)) * 1000
}

/** Counts ended jobs and resolves at the given number. */
function counter() {
  let count = 0
  let target = Infinity
  let reach = () => {}
  return {
    add: () => void (++count === target && reach()),
    ended: (number) => {
      count = 0
      target = number
      return new Promise((resolve) => (reach = resolve))
    },
  }
}

async function postgresEngine() {
  return await distributedEngine(({ pool, schema }) => postgresQueue({ pool, schema }))
}

async function bullmqEngine() {
  const prefix = `benchmark-${randomUUID()}`
  return await distributedEngine(
    () => bullmqQueue({ connection: redisUrl, prefix }),
    () => deleteKeys(prefix),
  )
}

async function distributedEngine(queueOf, cleanUp = async () => {}) {
  const pool = new Pool({ connectionString: databaseUrl })
  const schema = `benchmark_${randomUUID().replaceAll('-', '')}`
  const { jobs: store, applications, migrate } = postgresStores({ pool, schema })
  await migrate()
  const folder = await mkdtemp(join(tmpdir(), 'stemwork-benchmark-'))
  return startedEngine(
    { jobs: store, applications, queue: queueOf({ pool, schema }), blobs: fsBlobs({ directory: folder }) },
    async () => {
      await pool.query(`DROP SCHEMA ${schema} CASCADE`)
      await pool.end()
      await cleanUp()
      await rm(folder, { recursive: true })
    },
  )
}

function memoryEngine() {
  return startedEngine({}, async () => {})
}

async function startedEngine(parts, cleanUp) {
  const { add, ended } = counter()
  const engine = createEngine({
    ...parts,
    workflows: [nothing],
    runner: inlineRunner({ resolve: () => nothing }),
    // A limit, because without one the engine need not count the waiting jobs.
    limits: { maxQueuedJobs: jobs * 10 },
    dispatch: { concurrency },
  })
  engine.on('job.succeeded', add)
  engine.on('job.failed', ({ job }) => console.error(job.error))
  await engine.start()
  return {
    submit: () => engine.submit({ app: 'benchmark', workflow: nothing.id, params: {} }),
    ended,
    async close() {
      await engine.close()
      await cleanUp()
    },
  }
}

async function bareBullmq() {
  const { add, ended } = counter()
  const prefix = `benchmark-${randomUUID()}`
  const connection = new Redis(redisUrl, { maxRetriesPerRequest: null })
  const queue = new Queue('bare', { connection, prefix })
  const worker = new Worker('bare', async () => add(), { connection, prefix, concurrency })
  await worker.waitUntilReady()
  const data = { id: randomUUID(), app: 'benchmark' }
  return {
    submit: () => queue.add('job', data, { attempts: 1, removeOnComplete: true, removeOnFail: true }),
    ended,
    async close() {
      await worker.close()
      await queue.close()
      connection.disconnect()
      await deleteKeys(prefix)
    },
  }
}

function pQueue({ isInterruptible = false } = {}) {
  const { add, ended } = counter()
  const queue = new PQueue({ concurrency, ...(isInterruptible ? { timeout: 7_200_000 } : {}) })
  return {
    async submit() {
      void queue.add(async () => add(), isInterruptible ? { signal: new AbortController().signal } : {})
    },
    ended,
    async close() {},
  }
}

async function deleteKeys(prefix) {
  const redis = new Redis(redisUrl)
  const keys = await redis.keys(`${prefix}:*`)
  if (keys.length > 0) await redis.del(keys)
  redis.disconnect()
}

async function missingServer() {
  const pool = new Pool({ connectionString: databaseUrl })
  const redis = new Redis(redisUrl, { lazyConnect: true, retryStrategy: () => null })
  redis.on('error', () => {})
  try {
    const { rows } = await pool.query('SHOW server_version')
    await redis.connect()
    const redisVersion = /redis_version:(\S+)/.exec(await redis.info('server'))?.[1]
    printRows([['servers', `PostgreSQL ${rows[0].server_version}, Redis ${redisVersion}`]])
    return undefined
  } catch (error) {
    return (
      `no server at ${databaseUrl} or ${redisUrl} (${error.code ?? error.message}). Set DATABASE_URL and ` +
      'REDIS_URL.'
    )
  } finally {
    redis.disconnect()
    await pool.end()
  }
}

async function printMachine() {
  const version = async (path) => JSON.parse(await readFile(path, 'utf8')).version
  const bullmq = await version(createRequire(import.meta.url).resolve('bullmq/package.json'))
  printRows([
    ['machine', machine()],
    [
      'versions',
      `stemwork ${await version(new URL('../package.json', import.meta.url))}, Node ${process.version}, BullMQ ` +
        `${bullmq}`,
    ],
    [
      'input',
      `${jobs} jobs of one application, ${submitters} submitters, ${concurrency} at a time, median of ${rounds} rounds`,
    ],
  ])
}
