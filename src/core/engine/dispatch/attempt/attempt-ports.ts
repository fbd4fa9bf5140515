import type { JobRecord } from '../../job/job.js'
import type { StoreContact } from '../store-contact.js'
import type { Waking } from '../waking.js'
import type { SharedParts } from '../../engine-parts.js'

/** Dependencies of an attempt. */
export interface AttemptPorts extends Omit<SharedParts, 'applications' | 'clock'> {
  contact: StoreContact
  waking: Waking
  /** The address by which notifications can name this worker. */
  address: string
  /** Ids of the workflows that this process can run now; jobs of others are left to other workers. */
  runnable(): string[]
  /** Called with each job that ended here; unlike a listener, it cannot be removed. */
  onEnd(job: JobRecord): void
  /** Called when a job has failed because of the setup of this process. */
  onSetupError(): void
}
