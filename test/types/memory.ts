import type { ApplicationStore, BlobStore, JobQueue, JobStore } from 'stemwork'
import { memoryApplications, memoryBlobs, memoryJobs, memoryQueue } from 'stemwork/memory'
import { expectType } from './expect-type.js'

expectType<JobStore>()(memoryJobs({ clock: () => 0, idempotencyMs: 1000 }))
expectType<BlobStore>()(memoryBlobs())
expectType<JobQueue>()(memoryQueue())
expectType<ApplicationStore>()(memoryApplications())

// @ts-expect-error: a clock answers with milliseconds
memoryJobs({ clock: () => new Date() })
