import { EventEmitter } from 'eventemitter3'
import type { JobRecord } from './job/job.js'
import type { Logger } from './ports/logger.js'

/** May be `async`: nothing waits for the promise, and a rejection is logged like a thrown error. */
type JobListener = (event: { job: JobRecord }) => unknown

/** Events of changes that this process wrote. Each is emitted after the store has the change. */
export interface EngineEvents {
  'job.created': JobListener
  'job.started': JobListener
  'job.progressed': JobListener
  'job.succeeded': JobListener
  'job.failed': JobListener
  /** Back in the queue after a temporary failure, a shutdown, or a requested retry. */
  'job.requeued': JobListener
  'job.deleted': JobListener
}

export type EngineEventName = keyof EngineEvents

/** Calls listeners one by one; a listener that fails affects neither the job, the other listeners nor the host. */
export class JobEvents extends EventEmitter<EngineEvents> {
  readonly #logger: Logger

  constructor(logger: Logger) {
    super()
    this.#logger = logger
  }

  announce(name: EngineEventName, job: JobRecord): void {
    for (const listener of this.listeners(name)) void this.#call(name, listener, job)
  }

  async #call(name: EngineEventName, listener: JobListener, job: JobRecord): Promise<void> {
    try {
      await listener({ job })
    } catch (error) {
      this.#logger.error(
        { event: name, jobId: job.id, err: error },
        'A listener of a job event failed; the job and the other listeners are not affected.',
      )
    }
  }
}
