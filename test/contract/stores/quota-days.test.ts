import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Keyv } from 'keyv'
import { Pool } from 'pg'
import { describe, expect, test } from 'vitest'
import { memoryJobs } from '../../../src/adapters/memory.js'
import { postgresStores } from '../../../src/adapters/postgres.js'
import type { Backend } from '../../../src/adapters/stores/keyv/backend.js'
import { keyvJobs } from '../../../src/adapters/stores/keyv/keyv-jobs.js'
import { usageEntries } from '../../../src/adapters/stores/keyv/usage-entries.js'
import { sqliteStores } from '../../../src/adapters/stores/sqlite/index.js'
import { sampleJob } from '../../../src/contract/job-samples.js'
import { dayMs } from '../../../src/core/engine/job/quota.js'
import type { JobStore } from '../../../src/core/engine/ports/job-store.js'
import { describeWith } from '../../servers/found-server.js'
import { findPostgres } from '../../servers/postgres.js'

/** Uses up a quota, lets a day pass, and uses it again. */
async function isFullAgain(store: JobStore, passDay: () => Promise<void> | void): Promise<void> {
  const create = () => store.create(sampleJob(), { quota: { jobs: 1 } })
  await create()
  await expect(create()).rejects.toMatchObject({ code: 'QUOTA_EXCEEDED' })
  await passDay()
  expect(await store.usage('app-1')).toEqual({ jobs: 0, audioSeconds: 0, bytes: 0 })
  await create()
  await expect(create()).rejects.toMatchObject({ code: 'QUOTA_EXCEEDED' })
}

describe('a quota is full again the next day', () => {
  let now = 1_700_000_000_000
  const clock = () => now
  const passDay = () => void (now += dayMs)

  test('in memory', () => isFullAgain(memoryJobs({ clock }), passDay))

  test('in Keyv', () => isFullAgain(keyvJobs({ keyv: new Keyv(), clock }), passDay))

  test('in SQLite', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'stemwork-quota-'))
    const stores = sqliteStores({ path: join(directory, 'jobs.db'), clock })
    await isFullAgain(stores.jobs, passDay)
    stores.close()
    await rm(directory, { recursive: true })
  })
})

test('in Keyv, what is made at midnight takes nothing of the next day with it', async () => {
  let now = 1_700_000_000_000
  const stored = new Map<string, string>()
  const backend = {
    read: async (key: string) => stored.get(key),
    write: async (...[key, text]: [string, string]) => void stored.set(key, text),
  }
  const usage = usageEntries(backend as unknown as Backend, () => now)
  await usage.add('a', { jobs: 4 })
  await usage.taking('a', { jobs: 5 }, 1, async () => (now += dayMs))
  expect(await usage.read('a')).toEqual({ jobs: 0, audioSeconds: 0, bytes: 0 })
})

const postgres = await findPostgres()

describeWith('a quota is full again the next day', { postgres }, ({ postgres: server }) => {
  test('in Postgres', async () => {
    const schema = `test_${randomUUID().replaceAll('-', '')}`
    const pool = new Pool({ connectionString: server.url })
    try {
      const { jobs, migrate } = postgresStores({ pool, schema })
      await migrate()
      // The clock is the server's, so the recorded usage is moved back instead.
      await isFullAgain(jobs, async () => void (await pool.query(`UPDATE ${schema}.usage SET day = day - 1`)))
    } finally {
      await pool.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`)
      await pool.end()
      await server.release()
    }
  })
})
