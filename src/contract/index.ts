export {
  applicationStoreContract,
  type ApplicationStoreCase,
  type ApplicationStoreHarness,
  type OpenApplicationStore,
} from './application-store.js'
export {
  blobStoreContract,
  type BlobStoreCase,
  type BlobStoreHarness,
  type OpenBlobStore,
} from './blob-store/blob-store.js'
export { faultOnce, withFaults, type FaultPlan, type PortCall } from './faults.js'
export { jobQueueContract, type JobQueueCase, type JobQueueHarness, type OpenJobQueue } from './job-queue.js'
export { jobStoreContract, type JobStoreCase, type JobStoreHarness, type OpenJobStore } from './job-store/job-store.js'
export type { ContractApi, Skips } from './suite.js'
