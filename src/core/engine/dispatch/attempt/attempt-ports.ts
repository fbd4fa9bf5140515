import type { JobEvents } from '../../events.js'
import type { JobRecord } from '../../job/job.js'
import type { EngineOptions } from '../../options.js'
import type { BlobStore } from '../../ports/blob-store.js'
import type { JobQueue } from '../../ports/job-queue.js'
import type { JobStore } from '../../ports/job-store.js'
import type { Logger } from '../../ports/logger.js'
import type { Runner } from '../../ports/runner.js'
import type { StoreContact } from '../store-contact.js'
import type { Waking } from '../waking.js'
import type { WorkflowRegistry } from '../../workflow/registry.js'

/** The parts that an attempt uses. */
export interface AttemptPorts {
  jobs: JobStore
  contact: StoreContact
  blobs: BlobStore
  queue: JobQueue
  waking: Waking
  /** The address by which notifications can name this worker. */
  address: string
  runner: Runner
  workflows: WorkflowRegistry
  events: JobEvents
  options: EngineOptions
  logger: Logger
  /** Ids of the workflows that this process can run now; jobs of others are left to other workers. */
  runnable(): string[]
  /** Called with each job that ended here, whatever its listeners do. */
  onEnd(job: JobRecord): void
  /** Called when a job has failed because of how this process is set up. */
  onSetupError(): void
}
