// The cost of a durable step: jobs of 50 steps that do nothing against jobs without steps, on memory, SQLite and
// Postgres (DATABASE_URL, else skipped); and the memory of a process that passes a file from step to step and on to
// another attempt, by file size, with blobs on disk and on S3. Aims: at most 50 ms for a step, and no more memory for 1
// GiB than for 64 MiB. Options: --jobs=N, --mebibytes=N. Steps under kill -9 are a test: STEMWORK_KILLS=200 npx vitest
// run test/crash/steps.test.ts
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { S3Client } from '@aws-sdk/client-s3'
import { build } from 'esbuild'
import { Pool } from 'pg'
import { z } from 'zod'
import { fsBlobs } from '../dist/adapters/blobs/fs/index.js'
import { memoryJobs } from '../dist/adapters/memory.js'
import { postgresStores } from '../dist/adapters/postgres.js'
import { s3Blobs } from '../dist/adapters/blobs/s3/index.js'
import { sqliteStores } from '../dist/adapters/stores/sqlite/index.js'
import { createEngine, defineWorkflow, silentLogger } from '../dist/index.js'
import { middle, option } from './shared/benchmark.mjs'

const stepsOfJob = 50
const mebibyte = 1024 * 1024
const jobs = option('jobs', 10)
const largest = option('mebibytes', 1024)
const plain = { description: '', params: z.object({ count: z.number() }), inputs: [], outputs: {} }
const folder = await mkdtemp(join(tmpdir(), 'stemwork-bench-steps-'))

console.log(`${cpus()[0]?.model}, ${cpus().length} cores, Node ${process.version}, load ${loadavg()[0]?.toFixed(1)}`)
try {
  await overhead('memory', { jobs: memoryJobs() })
  const sqlite = sqliteStores({ path: join(folder, 'jobs.db') })
  await overhead('SQLite', sqlite)
  sqlite.close()
  await onPostgres()
  for (const mebibytes of new Set([64, largest]))
    await memory('disk', mebibytes, fsBlobs({ directory: join(folder, `blobs-${mebibytes}`) }))
  await onS3()
} finally {
  await rm(folder, { recursive: true, force: true })
}

async function onPostgres() {
  const pool = new Pool({ connectionString: process.env.DATABASE_URL ?? 'postgres://root@127.0.0.1:5432/test' })
  const schema = `bench_${randomUUID().slice(0, 8)}`
  try {
    const stores = postgresStores({ pool, schema })
    await stores.migrate()
    await overhead('Postgres', stores)
    await pool.query(`DROP SCHEMA ${schema} CASCADE`)
  } catch (error) {
    console.log(`Postgres: skipped, ${error.message}`)
  } finally {
    await pool.end()
  }
}

/** Both kinds of jobs take turns, so that other load on the machine slows both. */
async function overhead(name, { jobs: store, applications }) {
  const workflow = defineWorkflow({
    ...plain,
    id: 'benchmark/steps',
    name: 'Steps',
    async run({ step, params }) {
      for (let number = 0; number < params.count; number++) await step.run(`step-${number}`, async () => number)
    },
  })
  const engine = createEngine({ jobs: store, applications, workflows: [workflow], logger: silentLogger })
  const taken = { 0: [], [stepsOfJob]: [] }
  for (let round = 0; round <= jobs; round++) {
    for (const count of [0, stepsOfJob]) {
      const { job } = await engine.submit({ app: 'me', workflow: workflow.id, params: { count } })
      const startedAt = performance.now()
      const { status, failure } = await engine.run(job.id)
      if (status !== 'SUCCEEDED') throw new Error(failure)
      if (round > 0) taken[count].push(performance.now() - startedAt)
    }
  }
  await engine.close()
  const perStep = (middle(taken[stepsOfJob]) - middle(taken[0])) / stepsOfJob
  console.log(`${name}: ${perStep.toFixed(2)} ms for a step (median of ${jobs} jobs of ${stepsOfJob})`)
}

/** One step writes a file; the next reads it and fails; the next attempt reads it again from the blob store. */
async function memory(place, mebibytes, blobs) {
  let hasFailed = false
  const workflow = defineWorkflow({
    ...plain,
    id: 'benchmark/large',
    name: 'Large',
    async run({ step, params }) {
      const made = await step.run('write', async ({ file }) => {
        const handle = await open(file('large').path, 'w')
        const chunk = Buffer.alloc(mebibyte, 1)
        for (let number = 0; number < params.count; number++) await handle.write(chunk)
        await handle.close()
        return file('large')
      })
      await step.run('read', async () => {
        let bytes = 0
        for await (const chunk of createReadStream(made.path)) bytes += chunk.length
        if (bytes !== params.count * mebibyte) throw new Error(`${bytes} bytes arrived`)
        hasFailed = !hasFailed
        if (hasFailed) throw new Error('The next attempt reads it from the blob store.')
      })
    },
  })
  const settings = { dispatch: { retryDelayMs: 1 }, logger: silentLogger, scratchDirectory: folder }
  const engine = createEngine({ blobs, workflows: [workflow], ...settings })
  const { job } = await engine.submit({ app: 'me', workflow: workflow.id, params: { count: mebibytes } })
  let highest = 0
  const timer = setInterval(() => (highest = Math.max(highest, process.memoryUsage.rss())), 20)
  const { status, failure, token } = await engine.run(job.id)
  clearInterval(timer)
  await engine.close()
  if (status !== 'SUCCEEDED' || token !== 2) throw new Error(failure)
  console.log(
    `${place}: ${mebibytes} MiB from step to step, and to another attempt: at most ` +
      `${Math.round(highest / mebibyte)} MiB`,
  )
}

/** Starts the tests' S3 server, which keeps its objects on disk, in its own process. */
async function onS3() {
  const [source, server] = [join(folder, 'serve.ts'), join(folder, 'serve.mjs')]
  const module = fileURLToPath(new URL('../test/servers/s3-server.ts', import.meta.url))
  await writeFile(
    source,
    `import { startS3Server } from ${JSON.stringify(module)}
    startS3Server(['bench']).then(({ url, credentials }) => console.log(JSON.stringify({ url, credentials })))`,
  )
  await build({
    entryPoints: [source],
    outfile: server,
    bundle: true,
    platform: 'node',
    format: 'esm',
    logLevel: 'error',
  })
  const child = spawn(process.execPath, [server], { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const [line] = await once(child.stdout, 'data')
    const { url: endpoint, credentials } = JSON.parse(line)
    const client = new S3Client({ region: 'us-east-1', endpoint, forcePathStyle: true, credentials })
    for (const mebibytes of new Set([64, largest])) await memory('S3', mebibytes, s3Blobs({ client, bucket: 'bench' }))
  } finally {
    child.kill()
  }
}
