import { EventEmitter } from 'eventemitter3'
import type { JobRecord } from './job/job.js'
import type { LedgerEntry } from './job/ledger.js'
import type { Logger } from './ports/logger.js'
import type { FailingReceiver } from './job/receiver.js'

/** May be `async`: nothing waits for the promise, and a rejection is logged like a thrown error. */
type Listener<Event> = (event: Event) => unknown
type JobListener = Listener<{ job: JobRecord }>

/** Events for changes that this process wrote, each emitted after the change is stored. */
export interface EngineEvents {
  'job.created': JobListener
  'job.started': JobListener
  'job.progressed': JobListener
  'job.succeeded': JobListener
  'job.failed': JobListener
  /** Back in the queue after a temporary failure, a shutdown, or a requested retry, or with `job.preempted`. */
  'job.requeued': JobListener
  /** Interrupted for a job of another application; its work is kept, and it resumes in its turn. */
  'job.preempted': JobListener
  'job.deleted': JobListener
  /** A job has ended, and its ledger entry is stored. `entry.id` is the same in every place that shows the entry. */
  'usage.recorded': Listener<{ entry: LedgerEntry }>
  /** A webhook receiver of an application failed for too long and gets no messages until it is enabled. */
  'receiver.disabled': Listener<{ receiver: FailingReceiver }>
}

export type EngineEventName = keyof EngineEvents
export type JobEventName = Extract<EngineEventName, `job.${string}`>

/** Calls listeners one by one; a listener that fails affects neither the job, the other listeners nor the host. */
export class JobEvents extends EventEmitter<EngineEventName> {
  readonly #logger: Logger

  constructor(logger: Logger) {
    super()
    this.#logger = logger
  }

  announce<Name extends EngineEventName>(name: Name, event: Parameters<EngineEvents[Name]>[0]): void {
    for (const listener of this.listeners(name)) void this.#call(name, listener as Listener<typeof event>, event)
  }

  async #call<Event extends object>(name: EngineEventName, listener: Listener<Event>, event: Event): Promise<void> {
    try {
      await listener(event)
    } catch (error) {
      const about = 'job' in event ? { jobId: (event.job as JobRecord).id } : {}
      this.#logger.error(
        { event: name, ...about, err: error },
        'A listener of an event failed; the job and the other listeners are not affected.',
      )
    }
  }
}
