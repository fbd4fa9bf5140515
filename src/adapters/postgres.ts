export { postgresQueue, type PostgresQueueOptions } from './queues/postgres/postgres-queue.js'
export type { PostgresClient, PostgresConnection, PostgresPool } from './stores/postgres/database.js'
export { postgresStores, type PostgresStores, type PostgresStoresOptions } from './stores/postgres/postgres-stores.js'
