export { keyvApplications, type KeyvApplicationsOptions } from './keyv-applications.js'
export { keyvJobs, type KeyvJobsOptions } from './keyv-jobs.js'
export { keyvStores, type KeyvStores } from './keyv-stores.js'
