export { memoryApplications } from './memory-applications.js'
export { memoryBlobs, type MemoryBlobsOptions } from './memory-blobs.js'
export { memoryJobs, type MemoryJobsOptions } from './memory-jobs.js'
