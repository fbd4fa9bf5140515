import { setTimeout as delay } from 'node:timers/promises'
import PQueue from 'p-queue'
import { z } from 'zod'
import { type JobRecord, jobRecordSchema } from '../../../core/engine/job/job.js'
import { alreadyExists } from '../../../core/engine/job/queue-limit.js'
import type { JobRows } from './job-rows.js'
import { parseRecord } from './record.js'
import type { SqliteDatabase } from './sqlite-database.js'

/** Jobs of one turn, which blocks the event loop for 2 to 5 ms. Afterwards, other work has it for as long. */
const jobsAtOnce = 20

const sliceSchema = z.array(jobRecordSchema)

/** A job and its record as it is stored. */
interface Written {
  job: JobRecord
  record: string
}

/**
 * Jobs of batches. Inserting all of their rows at once would block the event loop for too long. One short transaction
 * stores their records, slice by slice, in a table of their own: from then on they exist, whatever happens to the
 * process. Each slice then becomes rows in a transaction of its own. Until all have, lists and counts of their
 * application wait.
 */
export class BatchIntake {
  readonly #database: SqliteDatabase
  readonly #rows: JobRows
  /** The jobs of each application that exist and have no rows yet. */
  readonly #open = new Map<string, Set<string>>()
  readonly #settling = new Map<string, Promise<void>>()
  readonly #turns = new PQueue({ concurrency: 1 })

  /** Inserts the rows of jobs that a killed process left without. */
  constructor(database: SqliteDatabase, rows: JobRows) {
    this.#database = database
    this.#rows = rows
    while (this.#settleSlice(null)) continue
  }

  /** Serializes jobs, which takes as long as storing them. */
  async written(jobs: readonly JobRecord[]): Promise<Written[]> {
    const all: Written[] = []
    const write = (job: JobRecord): Written => {
      const record = JSON.stringify(job)
      return { job: JSON.parse(record) as JobRecord, record }
    }
    for (const slice of slicesOf(jobs)) all.push(...(await this.inTurn(() => slice.map(write))))
    return all
  }

  /** Runs one piece of work after another, of whichever application, and rests for as long afterwards. */
  async inTurn<Result>(work: () => Result): Promise<Result> {
    return await this.#turns.add(async () => {
      const startedAt = performance.now()
      const result = work()
      await delay(performance.now() - startedAt)
      return result
    })
  }

  /**
   * Stores jobs of one application, in a transaction. Once that is committed, call `opened` at once, then `settle`.
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
    for (const slice of slicesOf(jobs)) {
      const records = `[${slice.map(({ record }) => record).join(',')}]`
      this.#database.write('INSERT INTO intake (app, jobs) VALUES (?, ?)', [app, records])
    }
  }

  opened(app: string, jobs: readonly Written[]): void {
    const open = this.#open.get(app) ?? new Set()
    for (const { job } of jobs) open.add(job.id)
    this.#open.set(app, open)
  }

  /** Jobs of the application that have no rows yet. */
  count(app: string): number {
    return this.#open.get(app)?.size ?? 0
  }

  /** Whether the job exists, but has no row yet. */
  has(id: string): boolean {
    return this.#appOf(id) !== undefined
  }

  #appOf(id: string): string | undefined {
    for (const [app, ids] of this.#open) if (ids.has(id)) return app
    return undefined
  }

  /** Resolves once all jobs of the application have rows; without `app`, those of all, even if some fail. */
  async settle(app?: string): Promise<void> {
    if (app === undefined) await Promise.allSettled([...this.#open.keys()].map((each) => this.settle(each)))
    else if (this.#open.has(app)) await this.#settleAll(app)
  }

  /** Resolves once the job has a row, if it exists. */
  async settleJob(id: string): Promise<void> {
    const app = this.#appOf(id)
    if (app !== undefined) await this.settle(app)
  }

  #settleAll(app: string): Promise<void> {
    const known = this.#settling.get(app)
    if (known) return known
    const settling = this.#settleSlices(app).finally(() => this.#settling.delete(app))
    this.#settling.set(app, settling)
    return settling
  }

  /** If this fails, the next call of `settle` continues. */
  async #settleSlices(app: string): Promise<void> {
    while (await this.inTurn(() => this.#settleSlice(app))) continue
  }

  /** Inserts the rows of the first slice, of this application or any; returns whether there was one. */
  #settleSlice(app: string | null): boolean {
    const slice = this.#database.get<{ id: number; jobs: string }>(
      'SELECT id, jobs FROM intake WHERE ? IS NULL OR app = ? ORDER BY id LIMIT 1',
      [app, app],
    )
    if (!slice) return false
    const jobs = parseRecord(sliceSchema, slice.jobs)
    this.#database.transaction(() => {
      for (const job of jobs) this.#rows.insert(job)
      this.#database.write('DELETE FROM intake WHERE id = ?', [slice.id])
    })
    for (const job of jobs) this.#close(job)
    return true
  }

  #close({ app, id }: JobRecord): void {
    const open = this.#open.get(app)
    open?.delete(id)
    if (open?.size === 0) this.#open.delete(app)
  }
}

function slicesOf<Item>(items: readonly Item[]): Item[][] {
  const count = Math.ceil(items.length / jobsAtOnce)
  return Array.from({ length: count }, (_, index) => items.slice(index * jobsAtOnce, (index + 1) * jobsAtOnce))
}
