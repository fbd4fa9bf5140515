export { memoryQueue } from './queues/memory/memory-queue.js'
export { memoryApplications } from './stores/memory/memory-applications.js'
export { memoryBlobs, type MemoryBlobsOptions } from './blobs/memory/memory-blobs.js'
export { memoryJobs, type MemoryJobsOptions } from './stores/memory/memory-jobs.js'
