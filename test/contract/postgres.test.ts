import { randomUUID } from 'node:crypto'
import { Pool } from 'pg'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { jobStoreContract } from '../../src/contract/job-store.js'
import { postgresStores } from '../../src/adapters/postgres.js'
import { describeWith } from '../servers/found-server.js'
import { findPostgres } from '../servers/postgres.js'

const postgres = await findPostgres()

describeWith('postgresJobs', { postgres }, ({ postgres: server }) => {
  const schema = `test_${randomUUID().replaceAll('-', '')}`
  let pool: Pool
  beforeAll(async () => {
    pool = new Pool({ connectionString: server.url })
    await postgresStores({ pool, schema }).migrate()
  })
  afterAll(async () => {
    await pool.query(`DROP SCHEMA ${schema} CASCADE`)
    await pool.end()
    await server.release()
  })

  jobStoreContract(
    { describe, test },
    {
      async open({ idempotencyMs }) {
        await pool.query(`TRUNCATE ${schema}.jobs, ${schema}.turns, ${schema}.documents, ${schema}.usage`)
        const { jobs } = postgresStores({ pool, schema, idempotencyMs })
        return {
          store: jobs,
          damage: async (id) => void (await pool.query(`UPDATE ${schema}.jobs SET record = '{}' WHERE id = $1`, [id])),
          async close() {},
        }
      },
    },
  )
})
