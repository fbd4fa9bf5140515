export { sqliteStores, type SqliteStores, type SqliteStoresOptions } from './sqlite-stores.js'
