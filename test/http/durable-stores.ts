import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Pool } from 'pg'
import { postgresStores } from '../../src/adapters/postgres.js'
import { sqliteStores } from '../../src/adapters/stores/sqlite/index.js'
import type { EngineParts } from '../../src/core/engine/engine.js'
import { findPostgres } from '../servers/postgres.js'

/** Empty stores for one test. */
export interface DurableStores extends Pick<EngineParts, 'jobs' | 'applications'> {
  close(): Promise<void>
}

const postgres = await findPostgres()

/** Name, function that opens the stores, and the reason why they are unavailable here. */
export const durableStores: [name: string, open: () => Promise<DurableStores>, missing: string | undefined][] = [
  ['SQLite', openSqlite, undefined],
  ['Postgres', openPostgres, 'missing' in postgres ? postgres.missing : undefined],
]

async function openSqlite(): Promise<DurableStores> {
  const directory = mkdtempSync(join(tmpdir(), 'stemwork-http-'))
  const { jobs, applications, close } = sqliteStores({ path: join(directory, 'jobs.db') })
  return {
    jobs,
    applications,
    async close() {
      close()
      rmSync(directory, { recursive: true })
    },
  }
}

async function openPostgres(): Promise<DurableStores> {
  if ('missing' in postgres) throw new Error(postgres.missing)
  const schema = `test_${randomUUID().replaceAll('-', '')}`
  const pool = new Pool({ connectionString: postgres.url })
  const { jobs, applications, migrate } = postgresStores({ pool, schema })
  await migrate()
  return {
    jobs,
    applications,
    async close() {
      await pool.query(`DROP SCHEMA ${schema} CASCADE`)
      await pool.end()
    },
  }
}
