import { EventEmitter } from 'eventemitter3'
import type { JobRecord } from './job/job.js'
import type { Logger } from './ports/logger.js'

/** Events of jobs that this process wrote. Each is emitted after the store has the change. */
export interface EngineEvents {
  'job.created': (event: { job: JobRecord }) => void
  'job.started': (event: { job: JobRecord }) => void
  'job.progressed': (event: { job: JobRecord }) => void
  'job.succeeded': (event: { job: JobRecord }) => void
  'job.failed': (event: { job: JobRecord }) => void
  /** Back in the queue after a failure that may pass, or a hand-back. */
  'job.requeued': (event: { job: JobRecord }) => void
  'job.deleted': (event: { job: JobRecord }) => void
}

export type EngineEventName = keyof EngineEvents

/** Emits so that a listener that throws is logged and fails no job. */
export class JobEvents extends EventEmitter<EngineEvents> {
  readonly #logger: Logger

  constructor(logger: Logger) {
    super()
    this.#logger = logger
  }

  announce(name: EngineEventName, job: JobRecord): void {
    if (this.listenerCount(name) === 0) return
    try {
      this.emit(name, { job })
    } catch (error) {
      this.#logger.error(
        { event: name, jobId: job.id, error },
        'A listener of a job event threw; the job is not affected.',
      )
    }
  }
}
