import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Pool } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fsBlobs } from '../../src/adapters/blobs/fs/index.js'
import { postgresStores } from '../../src/adapters/postgres.js'
import type { JobEngine } from '../../src/core/engine/engine.js'
import type { Workflow } from '../../src/core/engine/workflow/workflow.js'
import { createEngine } from '../../src/create-engine.js'
import { describeWith } from '../servers/found-server.js'
import { findPostgres } from '../servers/postgres.js'
import { Stemwork } from './stemwork.js'
import { temporaryFolder } from '../temporary-folder.js'

const postgres = await findPostgres()
const workflow = fileURLToPath(new URL('../crash/fixtures/crash-workflow.mjs', import.meta.url))

describeWith('stemwork worker with an end', { postgres }, ({ postgres: server }) => {
  const schema = `test_${randomUUID().replaceAll('-', '')}`
  let pool: Pool
  const folder = temporaryFolder()
  let engine: JobEngine
  beforeAll(async () => {
    pool = new Pool({ connectionString: server.url })
    const { migrate, ...stores } = postgresStores({ pool, schema })
    await migrate()
    const { default: crash } = (await import(workflow)) as { default: Workflow }
    engine = createEngine({ ...stores, blobs: fsBlobs({ directory: folder }), workflows: [crash] })
  })
  afterAll(async () => {
    await engine.close()
    await pool.query(`DROP SCHEMA ${schema} CASCADE`)
    await pool.end()
    await server.release()
  })

  const worker = (...args: string[]) => {
    const url = `${server.url}${server.url.includes('?') ? '&' : '?'}schema=${schema}`
    return new Stemwork(['worker', '--store', url, '--blobs', `file:${folder}`, '--workflows', workflow, ...args])
  }
  const submit = async (params: object) =>
    (await engine.submit({ app: 'a', workflow: 'test/crash', params: { number: 1, ...params } })).job.id

  test('--once runs one job, and its exit status says how it ended; --drain runs all waiting jobs', async () => {
    expect((await worker('--once', '--drain').finished()).status).toBe(2)
    expect(await worker('--once').finished()).toMatchObject({ status: 0, stdout: expect.stringContaining('0 jobs') })
    await submit({ isBad: true })
    expect(await worker('--once').finished()).toMatchObject({
      status: 1,
      stdout: expect.stringContaining(': 1 job ended, '),
    })
    for (let n = 0; n < 3; n++) await submit({})
    expect((await worker('--once').finished()).status).toBe(0)
    expect(await engine.count({ statuses: ['QUEUED'] })).toBe(2)
    expect((await worker('--drain', '--concurrency', '2').finished()).stdout).toContain('2 jobs ended, 0 of them')
    expect(await engine.count({ statuses: ['SUCCEEDED'] })).toBe(3)
  })

  test('the limits of a configuration file hold for a worker', async () => {
    const config = join(folder, 'worker.json')
    await writeFile(config, JSON.stringify({ engine: { limits: { jobTimeoutMs: 200 } } }))
    const id = await submit({ waits: true })
    expect((await worker('--once', '--config', config).finished()).status).toBe(1)
    expect((await engine.get(id))?.error).toMatchObject({ code: 'TIMEOUT' })
  })

  test('a command drains one of two workers: it takes no more jobs, and the other continues', async () => {
    const store = `${server.url}${server.url.includes('?') ? '&' : '?'}schema=${schema}`
    const workers = (...args: string[]) => new Stemwork(['workers', ...args, '--store', store]).finished()
    const names = async () => (await engine.workers()).map(({ owner }) => owner)
    const holder = async () => (await engine.get(id))?.lease?.owner
    const first = worker('--lease', '2', '--grace', '0')
    await expect.poll(async () => (await names()).length, { timeout: 30_000 }).toBe(1)
    const id = await submit({ waits: true })
    await expect.poll(holder, { timeout: 30_000 }).toBe((await names())[0])
    const drained = (await names())[0] ?? ''
    const second = worker('--lease', '2', '--grace', '0')
    await expect.poll(async () => (await names()).length, { timeout: 30_000 }).toBe(2)
    expect((await workers('drain', drained)).stdout).toMatch(new RegExp(`${drained} +draining`))
    await expect.poll(holder, { timeout: 30_000 }).toBe((await names()).find((name) => name !== drained))
    expect(await engine.get(id)).toMatchObject({ lapses: 0, shutdownRequeues: 1 })
    expect((await workers('drain', 'nobody')).status).not.toBe(0)
    // Only the drained worker is left.
    await engine.delete(id)
    second.kill('SIGTERM')
    await second.finished()
    const waiting = await submit({})
    expect(await engine.waiting((await engine.get(waiting))!)).toMatchObject({ reason: 'no_worker' })
    await workers('uncordon', drained)
    await expect.poll(async () => (await engine.get(waiting))?.status, { timeout: 30_000 }).toBe('SUCCEEDED')
    first.kill('SIGTERM')
    await first.finished()
  })

  test.each(['--once', '--drain'])(
    '%s requeues its job when it is told to exit, without costing an attempt',
    async (end) => {
      const id = await submit({ waits: true })
      const process = worker(end)
      await expect.poll(async () => (await engine.get(id))?.stage, { timeout: 30_000, interval: 100 }).toBe('begin')
      process.kill('SIGTERM')
      // No job has ended, and the worker reports that.
      expect(await process.finished()).toMatchObject({ stdout: expect.stringContaining('0 jobs ended') })
      expect(await engine.get(id)).toMatchObject({
        status: 'QUEUED',
        attempts: 0,
        lease: null,
        history: [{ outcome: 'handed_back' }],
      })
      await engine.delete(id)
    },
  )
})
