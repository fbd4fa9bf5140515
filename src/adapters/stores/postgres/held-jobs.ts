import { copyOfPlain } from '../shared/plain-copy.js'
import type { StoredJob } from './job-row.js'

/** A job as this process last wrote it, and the database's time by this process's clock. */
export interface HeldJob extends StoredJob {
  nonce: string
  now: number
}

/** More than a process runs at a time. Any other job is read before a change. */
const maxJobs = 1000

/**
 * The jobs that this process has claimed, as they were last written. A job that no one else has written since, as its
 * version shows, need not be read before a change: a heartbeat and the end of a job are one statement each.
 */
export class HeldJobs {
  readonly #jobs = new Map<string, { stored: StoredJob; serverTime: number; readAt: number }>()

  /**
   * @param serverTime the database's clock when it wrote the job, so that a lease computed from it ends on time or
   * early
   */
  keep(stored: StoredJob, serverTime: number): void {
    const { id, lease } = stored.job
    this.#jobs.delete(id)
    if (lease === null) return
    for (const oldest of this.#jobs.keys()) {
      if (this.#jobs.size < maxJobs) break
      this.#jobs.delete(oldest)
    }
    // A copy: later changes to the caller's record do not matter here.
    this.#jobs.set(id, { stored: copyOfPlain(stored), serverTime, readAt: performance.now() })
  }

  /** The job, if it was claimed here with this token. */
  under(id: string, token: number): HeldJob | undefined {
    const held = this.#jobs.get(id)
    const lease = held?.stored.job.lease
    if (!held || lease?.token !== token) return undefined
    return { ...held.stored, nonce: lease.nonce, now: held.serverTime + Math.floor(performance.now() - held.readAt) }
  }

  forget(id: string): void {
    this.#jobs.delete(id)
  }
}
