import pg from 'pg'
import { createEngine } from 'stemwork'
import { postgresQueue, type PostgresStores, postgresStores } from 'stemwork/postgres'
import { expectFree, expectType } from './expect-type.js'

const stores = postgresStores({ pool: new pg.Pool(), schema: 'media' })
expectType<PostgresStores>()(stores)
createEngine({
  jobs: stores.jobs,
  applications: stores.applications,
  queue: postgresQueue({ pool: new pg.Pool(), schema: 'media', checkIntervalMs: 10_000 }),
})

export async function use(): Promise<void> {
  await stores.migrate()
  expectFree(stores.migrate)
}

// @ts-expect-error: a pool, not its address
postgresQueue({ pool: 'postgres://localhost' })

// @ts-expect-error: a pool, not its address
postgresStores({ pool: 'postgres://localhost' })
