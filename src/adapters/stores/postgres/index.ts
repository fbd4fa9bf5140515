export type { PostgresClient, PostgresPool } from './database.js'
export { postgresStores, type PostgresStores, type PostgresStoresOptions } from './postgres-stores.js'
