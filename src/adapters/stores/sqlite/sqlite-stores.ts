import { requireOption, requireTimes } from '../../../core/engine/errors.js'
import type { ApplicationStore } from '../../../core/engine/ports/application-store.js'
import type { JobStore } from '../../../core/engine/ports/job-store.js'
import { type Logger, silentLogger } from '../../../core/engine/ports/logger.js'
import { SqliteDatabase } from './sqlite-database.js'
import { sqliteApplications } from './sqlite-applications.js'
import { sqliteJobs } from './sqlite-jobs.js'

export interface SqliteStoresOptions {
  /**
   * The database file; made, with its folder, if missing. Two more files, `-wal` and at times `-journal`, lie beside
   * it.
   */
  path: string
  /** Epoch milliseconds. Default: `Date.now`. */
  clock?: () => number
  /** How long an idempotency key keeps pointing at the job that it made. Default: 24 h. */
  idempotencyMs?: number
  /**
   * How long to wait, on opening, for another process to release the file; this blocks the event loop. Default: 1000.
   */
  openTimeoutMs?: number
  /** Reports an opening that takes long, as after an update. Default: nothing is logged. */
  logger?: Logger
}

export interface SqliteStores {
  jobs: JobStore
  applications: ApplicationStore
  /** Releases the file. Calls to the stores then throw `STORE_UNAVAILABLE`. Closing twice is no error. */
  close(this: void): void
}

/**
 * Jobs and applications in one SQLite file: durable, indexed, without a server. One process holds the file from here to
 * `close()`, or to its end, however it ends; a second one is refused.
 *
 * @example
 * const { jobs, applications, close } = sqliteStores({ path: 'data/stemwork.db' })
 * @throws StemworkError `INVALID_OPTIONS` without a path; `STORE_UNAVAILABLE` when another process holds the file or it
 * cannot be used.
 */
export function sqliteStores(options: SqliteStoresOptions): SqliteStores {
  const { path, clock = Date.now, idempotencyMs = 24 * 60 * 60 * 1000, openTimeoutMs = 1000 } = options ?? {}
  const isGiven = typeof path === 'string' && path !== ''
  requireOption(isGiven, options, "sqliteStores({ path: 'data/stemwork.db' })", 'the path of a file')
  requireTimes('sqliteStores', { idempotencyMs })
  const database = new SqliteDatabase(path, openTimeoutMs, options.logger ?? silentLogger)
  return {
    jobs: sqliteJobs(database, { clock, idempotencyMs }),
    applications: sqliteApplications(database),
    close: () => database.close(),
  }
}
