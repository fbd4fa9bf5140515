import type { ApplicationStore } from '../../../core/engine/ports/application-store.js'
import type { JobStore } from '../../../core/engine/ports/job-store.js'
import { keyvApplications } from './keyv-applications.js'
import { keyvJobs, type KeyvStoresOptions } from './keyv-jobs.js'

export type { KeyvStoresOptions } from './keyv-jobs.js'

export interface KeyvStores {
  jobs: JobStore
  applications: ApplicationStore
}

/**
 * Jobs and applications in one Keyv, over any backend. Keyv has neither compare-and-set nor an index, so these stores
 * are correct only while one process writes them (`traits.scope` is `process`). The backend must not drop entries by
 * itself (no eviction, no `maxmemory` policy but `noeviction`). The host closes the Keyv.
 *
 * @example
 * const keyv = new Keyv({ store: new KeyvRedis('redis://127.0.0.1:6379'), namespace: 'stemwork' })
 * const engine = createEngine({ ...keyvStores({ keyv }) })
 */
export function keyvStores(options: KeyvStoresOptions): KeyvStores {
  return { jobs: keyvJobs(options), applications: keyvApplications(options) }
}
