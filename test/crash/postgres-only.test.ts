import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterAll, beforeAll, test } from 'vitest'
import { z } from 'zod'
import { fsBlobs } from '../../src/adapters/blobs/fs/index.js'
import { postgresQueue, postgresStores } from '../../src/adapters/postgres.js'
import { JobEngine } from '../../src/core/engine/engine.js'
import { inlineRunner } from '../../src/core/engine/runner/inline-runner.js'
import { defineWorkflow } from '../../src/core/engine/workflow/workflow.js'
import { describeWith } from '../servers/found-server.js'
import { startPostgres } from '../servers/postgres.js'
import { WorkerProcess } from './worker-process.js'

const heldWorkflow = fileURLToPath(new URL('./fixtures/held-workflow.mjs', import.meta.url))

// The accepting node knows the workflow by its description only; its stages run on the workers.
const held = defineWorkflow({
  id: 'test/held',
  name: 'Held',
  description: '',
  params: z.object({ mark: z.string() }),
  inputs: [],
  outputs: {},
  stages: [{ name: 'elsewhere', run: () => Promise.reject(new Error('must not run here')) }],
})

describeWith('two workers on Postgres alone', { postgres: await startPostgres() }, ({ postgres }) => {
  let folder: string
  let pool: pg.Pool
  let engine: JobEngine
  let workers: WorkerProcess[]

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'stemwork-postgres-only-'))
    pool = new pg.Pool({ connectionString: postgres.url })
    const { jobs, applications, migrate } = postgresStores({ pool })
    await migrate()
    const blobs = fsBlobs({ directory: join(folder, 'blobs') })
    const runner = inlineRunner({ resolve: () => held })
    engine = new JobEngine({ jobs, applications, blobs, queue: postgresQueue({ pool }), runner, workflows: [held] })
    const urls = { store: postgres.url, blobs: `file:${join(folder, 'blobs')}` }
    workers = [1, 2].map(() => new WorkerProcess(urls, {}, heldWorkflow))
    await Promise.all(workers.map((worker) => worker.start()))
  }, 120_000)

  afterAll(async () => {
    await Promise.all(workers.map((worker) => worker.stop()))
    await engine.close()
    await pool.end()
    await postgres.release()
    await rm(folder, { recursive: true, force: true })
  }, 60_000)

  test('a job whose worker is killed with -9 is finished by the other one', { timeout: 120_000 }, async () => {
    const mark = join(folder, 'mark')
    const { job } = await engine.submit({ app: 'app', workflow: held.id, params: { mark } })
    const pids = async () => (await readFile(mark, 'utf8').catch(() => '')).split(' ').filter(Boolean).map(Number)
    while ((await pids()).length < 2) await sleep(50)
    const running = await pids()
    const victim = workers.find(({ pid }) => pid !== undefined && running.includes(pid))
    assert.ok(victim, `none of ${workers.map(({ pid }) => pid).join(', ')} is among ${running.join(', ')}`)
    const survivor = workers.find((worker) => worker !== victim)
    await victim.kill()
    let ended = await engine.get(job.id)
    while (ended?.status !== 'SUCCEEDED' && ended?.status !== 'FAILED') {
      await sleep(50)
      ended = await engine.get(job.id)
    }
    assert.deepEqual([ended.status, ended.attempts], ['SUCCEEDED', 2], survivor?.log)
  })
})
