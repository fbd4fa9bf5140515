import { describe, test } from 'node:test'
import {
  faultOnce,
  jobQueueContract,
  jobStoreContract,
  blobStoreContract,
  applicationStoreContract,
  withFaults,
} from 'stemwork/contract'
import type { JobStore } from 'stemwork'
import { memoryApplications, memoryBlobs, memoryJobs, memoryQueue } from 'stemwork/memory'
import { expectType } from './expect-type.js'

const api = { describe, test }
const close = async () => {}
jobStoreContract(api, { open: async ({ idempotencyMs }) => ({ store: memoryJobs({ idempotencyMs }), close }) })
blobStoreContract(api, { open: async () => ({ store: memoryBlobs(), close }) })
applicationStoreContract(api, { open: async () => ({ store: memoryApplications(), close }) })
jobQueueContract(api, { open: async () => ({ queue: memoryQueue(), close }) })
expectType<JobStore>()(withFaults(memoryJobs(), faultOnce('claim', 'after')))

// @ts-expect-error: a skipped case is one of the suite
jobQueueContract(api, { open: async () => ({ queue: memoryQueue(), close }), skips: { 'no such case': 'why' } })
// @ts-expect-error: what is opened can be closed
blobStoreContract(api, { open: async () => ({ store: memoryBlobs() }) })
// @ts-expect-error: before or after the effect
faultOnce('claim', 'during')
