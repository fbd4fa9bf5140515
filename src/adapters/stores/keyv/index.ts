import { renamed } from '../../../core/engine/errors.js'

export { keyvStores, type KeyvStores, type KeyvStoresOptions } from './keyv-stores.js'

// Before 0.2. Remove it in 0.3.
export const keyvJobs = renamed('keyvJobs', 'keyvStores({ keyv }).jobs')
export const keyvApplications = renamed('keyvApplications', 'keyvStores({ keyv }).applications')
