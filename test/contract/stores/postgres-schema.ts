import { randomUUID } from 'node:crypto'
import { Pool, type PoolConfig } from 'pg'
import { afterAll, beforeAll } from 'vitest'
import { postgresStores } from '../../../src/adapters/postgres.js'
import type { FoundServer } from '../../servers/found-server.js'

/** A schema with the tables, and a pool for it. Schema, pool and server end after the suite's tests. */
export function ownSchema(server: FoundServer, options: PoolConfig = {}) {
  const schema = `test_${randomUUID().replaceAll('-', '')}`
  const pool = new Pool({ connectionString: server.url, ...options })
  beforeAll(() => postgresStores({ pool, schema }).migrate())
  afterAll(async () => {
    await pool.query(`DROP SCHEMA ${schema} CASCADE`)
    await pool.end()
    await server.release()
  })
  return { pool, schema }
}
