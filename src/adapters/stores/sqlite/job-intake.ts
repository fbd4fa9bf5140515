import { setTimeout as delay } from 'node:timers/promises'
import PQueue from 'p-queue'
import { z } from 'zod'
import { type JobRecord, jobRecordSchema } from '../../../core/engine/job/job.js'
import { mapInPasses } from '../../../core/engine/limits/passes.js'
import { alreadyExists } from '../../../core/engine/job/queue-limit.js'
import type { JobRows } from './job-rows.js'
import { parseRecord } from './record.js'
import type { SqliteDatabase } from './sqlite-database.js'

/** Jobs that get their rows in one transaction, which takes 2 to 5 ms. Others have the event loop for as long. */
const jobsAtOnce = 20

const sliceSchema = z.array(jobRecordSchema)

/** A job and its record as it is stored. */
interface Written {
  job: JobRecord
  record: string
}

/** Writing all of them at once would take longer than storing them. */
export function written(jobs: readonly JobRecord[]): Promise<Written[]> {
  return mapInPasses(jobs, (job) => {
    const record = JSON.stringify(job)
    return { job: JSON.parse(record) as JobRecord, record }
  })
}

/**
 * Jobs of large batches, which would hold the event loop for too long if all of them got their rows at once. One short
 * transaction stores their records, slice by slice, in a table of their own: from then on they exist, whatever happens
 * to the process. Each slice then becomes rows in a transaction of its own. Until all have, lists and counts of their
 * application wait.
 */
export class JobIntake {
  readonly #database: SqliteDatabase
  readonly #rows: JobRows
  /** The jobs of each application that have no rows yet. */
  readonly #accepted = new Map<string, ReadonlySet<string>>()
  readonly #settling = new Map<string, Promise<void>>()
  /** One slice at a time; applications take turns. */
  readonly #turns = new PQueue({ concurrency: 1 })

  /** Gives their rows to the jobs that a killed process left without. */
  constructor(database: SqliteDatabase, rows: JobRows) {
    this.#database = database
    this.#rows = rows
    while (this.#settleSlice(null)) continue
  }

  /**
   * Stores jobs of one application, of which none may be open, in a transaction. Call `settle` afterwards.
   *
   * @throws StemworkError `ALREADY_EXISTS`.
   */
  accept(app: string, jobs: readonly Written[]): void {
    const ids = new Set<string>()
    for (const { job } of jobs) {
      if (ids.has(job.id) || this.has(job.id)) throw alreadyExists(job.id)
      ids.add(job.id)
    }
    const known = this.#rows.firstOf([...ids])
    if (known !== undefined) throw alreadyExists(known)
    for (let at = 0; at < jobs.length; at += jobsAtOnce) {
      const slice = jobs.slice(at, at + jobsAtOnce).map(({ record }) => record)
      this.#database.write('INSERT INTO intake (app, jobs) VALUES (?, ?)', app, `[${slice.join(',')}]`)
    }
    this.#accepted.set(app, ids)
  }

  /** Whether jobs of the application have no rows yet. */
  isOpen(app: string): boolean {
    return this.#accepted.has(app)
  }

  /** Whether the job exists, but has no row yet. */
  has(id: string): boolean {
    return [...this.#accepted.values()].some((ids) => ids.has(id))
  }

  /** Resolves once all jobs of the application, or of all of them, have rows. */
  async settle(app?: string): Promise<void> {
    for (const each of app === undefined ? [...this.#accepted.keys()] : [app]) {
      while (this.#accepted.has(each)) await this.#settleAll(each)
    }
  }

  #settleAll(app: string): Promise<void> {
    const known = this.#settling.get(app)
    if (known) return known
    const settling = this.#settleSlices(app).finally(() => this.#settling.delete(app))
    this.#settling.set(app, settling)
    return settling
  }

  /** Where this fails, the next call of `settle` goes on. */
  async #settleSlices(app: string): Promise<void> {
    const settleOne = async () => {
      const startedAt = performance.now()
      const isLeft = this.#settleSlice(app)
      await delay(performance.now() - startedAt)
      return isLeft
    }
    while (await this.#turns.add(settleOne)) continue
    this.#accepted.delete(app)
  }

  /** Makes the rows of the first slice, of this application or any; returns whether there was one. */
  #settleSlice(app: string | null): boolean {
    const slice = this.#database.get<{ id: number; jobs: string }>(
      'SELECT id, jobs FROM intake WHERE ? IS NULL OR app = ? ORDER BY id LIMIT 1',
      app,
      app,
    )
    if (!slice) return false
    const jobs = parseRecord(sliceSchema, slice.jobs)
    this.#database.transaction(() => {
      for (const job of jobs) this.#rows.insert(job)
      this.#database.write('DELETE FROM intake WHERE id = ?', slice.id)
    })
    return true
  }
}
