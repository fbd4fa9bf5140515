import type { Usage } from '../../../core/engine/job/quota.js'
import { isTerminal, type JobRecord } from '../../../core/engine/job/job.js'
import { batched } from '../shared/batched.js'
import { UnreadableRows } from '../shared/unreadable-rows.js'
import { type PostgresPool, preparedStatement, type Row, type Send, statement } from './database.js'
import { type HeldJob, HeldJobs } from './held-jobs.js'
import type { Statement } from './job-lists.js'
import { columnText, nowSql, parseStored, type StoredJob } from './job-row.js'
import { type ClaimedEnd, jobEnds, jobUpdates } from './job-updates.js'
import { rowsById } from './rows-by-id.js'

/** Records are read in the event loop: not too many at once. */
const readAtOnce = 16

interface ChangeOptions {
  isRepeatable?: boolean
  usage?: Partial<Usage>
  known?: HeldJob
  send?: Send
}

/** The table of jobs as records that are read, recomputed outside the database, and written back. */
export class StoredJobs {
  /** Jobs that this process has claimed. */
  readonly held = new HeldJobs()
  readonly send: Send = (text, values) => statement(this.#pool, text, values)
  readonly sendPrepared: Send = (text, values) => preparedStatement(this.#pool, text, values)
  readonly #pool: PostgresPool
  readonly #readSql: string
  readonly #find: (id: string) => Promise<Row | undefined>
  readonly #replace: ReturnType<typeof jobUpdates>
  /** Ends that come together are one statement and one commit. */
  readonly #end: (end: ClaimedEnd) => Promise<boolean>
  readonly #unreadable = new UnreadableRows()

  constructor(pool: PostgresPool, schema: string) {
    this.#pool = pool
    const read = { table: `${schema}.jobs`, columns: `${nowSql}, version, record, claims` }
    this.#readSql = `SELECT ${read.columns} FROM ${read.table} WHERE id = $1`
    this.#find = rowsById(pool, { ...read, maxRows: readAtOnce })
    this.#replace = jobUpdates(schema)
    const end = jobEnds(pool, schema)
    this.#end = batched((ends) => end(this.sendPrepared, ends), {
      maxItems: 100,
      // Ends that come meanwhile share the next statement: for one end, it costs nearly as much as for ten.
      parallel: 1,
      isItemsFault: () => true,
    })
  }

  /** IDs of jobs that were found and could not be read. */
  get unreadable(): string[] {
    return this.#unreadable.ids
  }

  /** Reads a job, even one marked deleted, and the database's time. @param send in a transaction */
  async read(id: string, send?: Send): Promise<(StoredJob & { now: number }) | undefined> {
    const row = send ? (await send(this.#readSql, [columnText(id)]))[0] : await this.#find(id)
    if (!row) return undefined
    const [now, ...stored] = row
    return { ...parseStored(stored), now: Number(now) }
  }

  /** Returns the jobs that the statement finds. Unreadable ones are passed to it, and others come instead. */
  select(statementWithout: (unreadable: readonly string[]) => Statement | undefined): Promise<JobRecord[]> {
    return this.readWithout(async (unreadable) => {
      const found = statementWithout(unreadable)
      return found ? await this.rows(found) : []
    })
  }

  rows({ text, values, isCommon = false }: Statement): Promise<Row[]> {
    return isCommon ? this.sendPrepared(text, values) : this.send(text, values)
  }

  /** Like `select`. @param rowsWithout rows of `version, record, claims, id` */
  async readWithout(rowsWithout: (unreadable: readonly string[]) => Promise<Row[]>): Promise<JobRecord[]> {
    for (;;) {
      const rows = await rowsWithout(this.unreadable)
      const jobs = this.readable(rows)
      if (jobs.length === rows.length) return jobs
    }
  }

  /** Parses rows: a damaged record is an error of its own job only. @param rows `version, record, claims, id` */
  readable(rows: readonly Row[]): JobRecord[] {
    return this.#unreadable.readable(
      rows,
      (row) => row[3] ?? '',
      (row) => parseStored(row).job,
    )
  }

  /**
   * Computes the next record outside the database and writes it only over the version read, until this succeeds.
   *
   * @param next a pure function of the record and the database's time; `undefined`: the change does not apply
   */
  async change(
    id: string,
    next: (job: JobRecord, now: number) => JobRecord | undefined,
    { isRepeatable = false, usage, known, send }: ChangeOptions = {},
  ): Promise<JobRecord | undefined> {
    let stored: (StoredJob & { now: number }) | undefined = known
    for (let nonce = known?.nonce; (stored ??= await this.read(id, send)); stored = nonce = undefined) {
      const changed = next(stored.job, stored.now)
      if (!changed) break
      const isWritten =
        nonce !== undefined && isTerminal(changed) && !usage
          ? await this.#end({ stored, nonce, next: changed })
          : await this.#replace(send ?? this.sendPrepared, stored, changed, { isRepeatable, nonce, usage })
      if (isWritten) {
        this.held.keep({ job: changed, version: stored.version + 1 }, stored.now)
        return changed
      }
    }
    this.held.forget(id)
    return undefined
  }
}
