import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { jobStoreContract } from '../../../src/contract/job-store/job-store.js'
import { postgresStores } from '../../../src/adapters/postgres.js'
import { describeWith } from '../../servers/found-server.js'
import { findPostgres } from '../../servers/postgres.js'
import { poolWithClock } from './postgres-clock.js'

const postgres = await findPostgres()

describeWith('postgresJobs', { postgres }, ({ postgres: server }) => {
  const schema = `test_${randomUUID().replaceAll('-', '')}`
  let clock: Awaited<ReturnType<typeof poolWithClock>>
  beforeAll(async () => {
    clock = await poolWithClock(server.url, schema)
    await postgresStores({ pool: clock.pool, schema }).migrate()
  })
  afterAll(async () => {
    await clock.end()
    await server.release()
  })

  jobStoreContract(
    { describe, test },
    {
      async open({ idempotencyMs }) {
        const { pool, advance } = clock
        await pool.query(`TRUNCATE ${schema}.jobs, ${schema}.turns, ${schema}.documents, ${schema}.usage,
          ${schema}.ledger, ${schema}.ledger_days, ${schema}.ledger_summed`)
        const { jobs } = postgresStores({ pool, schema, idempotencyMs })
        return {
          store: jobs,
          advance,
          damage: async (id) => void (await pool.query(`UPDATE ${schema}.jobs SET record = '{}' WHERE id = $1`, [id])),
          async close() {},
        }
      },
    },
  )
})
