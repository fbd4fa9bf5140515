import pg from 'pg'
import { createEngine } from 'stemwork'
import { type PostgresStores, postgresStores } from 'stemwork/postgres'
import { expectType } from './expect-type.js'

const stores = postgresStores({ pool: new pg.Pool(), schema: 'media' })
expectType<PostgresStores>()(stores)
createEngine({ jobs: stores.jobs, applications: stores.applications })

export async function use(): Promise<void> {
  await stores.migrate()
}

// @ts-expect-error: a pool, not its address
postgresStores({ pool: 'postgres://localhost' })
