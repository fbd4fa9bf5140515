import assert from 'node:assert/strict'
import { Pool } from 'pg'
import { afterAll, test } from 'vitest'
import { sampleJob, succeed } from '../../../src/contract/job-samples.js'
import { postgresStores } from '../../../src/adapters/postgres.js'
import { describeWith } from '../../servers/found-server.js'
import { startPgBouncer } from '../../servers/pgbouncer.js'
import { startPostgres } from '../../servers/postgres.js'

const database = await startPostgres()
const bouncer = 'missing' in database ? database : await startPgBouncer(database.url)

describeWith('postgresStores', { database, bouncer }, ({ database: server, bouncer: pooler }) => {
  afterAll(async () => {
    await pooler.release()
    await server.release()
  })

  test('six processes lose nothing behind PgBouncer in transaction mode, without prepared statements', async () => {
    const pools = Array.from({ length: 6 }, () => new Pool({ connectionString: pooler.url, max: 4 }))
    try {
      const stores = pools.map((pool) => postgresStores({ pool }).jobs)
      await postgresStores({ pool: pools[0]! }).migrate()
      await Promise.all(
        stores.map(async (jobs, place) => {
          const next = stores[(place + 1) % stores.length]
          for (let n = 0; n < 20; n++) {
            const { job } = await jobs.create(sampleJob())
            const claimed = await next!.claim({ id: job.id, owner: 'worker', leaseMs: 60_000 })
            assert.ok(claimed)
            assert.equal((await next!.apply(job.id, succeed(claimed)))?.status, 'SUCCEEDED')
          }
        }),
      )
      assert.equal(await stores[0]!.count({ statuses: ['SUCCEEDED'] }), 120)
    } finally {
      await Promise.all(pools.map((pool) => pool.end()))
    }
  })
})
