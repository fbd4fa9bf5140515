import { createEngine } from 'stemwork'
import { sqliteStores, type SqliteStores } from 'stemwork/sqlite'
import { expectFree, expectType } from './expect-type.js'

const stores = sqliteStores({ path: 'data/jobs.sqlite' })
expectType<SqliteStores>()(stores)
createEngine({ jobs: stores.jobs, applications: stores.applications })
stores.close()
expectFree(stores.close)

// @ts-expect-error: a path is needed
sqliteStores({})
