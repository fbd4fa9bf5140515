import type { JobRecord } from '../../../core/engine/job/job.js'

/** A record as this process last wrote it. */
export interface KnownRecord {
  job: JobRecord
  version: number
}

/** A burst of jobs that wait, at one or two kilobytes each: with fewer, those that are claimed next would always be the forgotten ones. */
const maxRecords = 10_000

/**
 * Records that this process wrote and is likely to change next, so that the change needs no read before it. They may be
 * outdated: only a write that compares the version may be based on one.
 */
export class KnownRecords {
  readonly #records = new Map<string, KnownRecord>()

  /** The record, once: whoever changes it enters what became of it. */
  take(id: string): KnownRecord | undefined {
    const record = this.#records.get(id)
    if (record) this.#records.delete(id)
    return record
  }

  /** @param job not changed by anybody from here on */
  enter(job: JobRecord, version: number): void {
    if (this.#records.size >= maxRecords) {
      for (const oldest of this.#records.keys()) {
        this.#records.delete(oldest)
        break
      }
    }
    this.#records.set(job.id, { job, version })
  }
}
