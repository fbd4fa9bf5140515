import { accessSync, chmodSync, closeSync, constants, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'libsql'
import { codeOf, StemworkError, storeUnavailable } from '../../../core/engine/errors.js'
import type { Logger } from '../../../core/engine/ports/logger.js'
import { fillSearch } from './fill-search.js'
import { migrations } from './schema.js'
import { syncedFile } from './synced-file.js'

/** A value that SQLite keeps. */
export type Value = string | number | null

/**
 * One file, held exclusively. The driver is synchronous: every call runs in the caller's event loop and lasts tens of
 * microseconds. A function that is passed to `transaction` runs without a break, so reading and writing in it need no
 * other lock.
 *
 * A commit survives the death of the process, kill -9 included, but the system writes it to the disk later: waiting for
 * that here would block the event loop for as long as the disk is busy. Changes that must survive a power cut wait for
 * `durable`.
 */
export class SqliteDatabase {
  readonly #database: Database.Database
  readonly #statements = new Map<string, Database.Statement>()
  readonly #log: ReturnType<typeof syncedFile>
  #closed = false

  constructor(path: string, openTimeoutMs: number, logger: Logger) {
    try {
      makePrivate(path)
      this.#database = new Database(path, { timeout: openTimeoutMs })
    } catch (error) {
      throw storageError(error, path)
    }
    try {
      // In this order: exclusive before WAL keeps SQLite from making a file for memory that nobody shares.
      this.#database.exec('PRAGMA locking_mode = EXCLUSIVE')
      this.#database.exec('PRAGMA journal_mode = WAL')
      this.#database.exec('PRAGMA foreign_keys = ON')
      this.#database.exec('PRAGMA synchronous = NORMAL')
      // The commit that fills the log copies it into the file: fewer pages than usual take less time. Another
      // connection could do that outside the event loop, but each read of a shared file takes 5.5 µs instead of 3.
      this.#database.exec('PRAGMA wal_autocheckpoint = 400')
      // Takes the lock: the system's own lock on the file, which ends with the process, however that ends.
      this.#database.exec('BEGIN IMMEDIATE; COMMIT')
      this.#migrate(path, logger)
      fillSearch(this.#database, logger)
      this.#log = syncedFile(`${path}-wal`, () => void this.#database.exec('PRAGMA wal_checkpoint(TRUNCATE)'))
    } catch (error) {
      this.#database.close()
      throw codeOf(error) === 'SQLITE_BUSY' ? heldByAnother(path, error) : storageError(error, path)
    }
  }

  /** The first row. */
  get<Row>(sql: string, values: Value[] = []): Row | undefined {
    return this.#run(() => this.#prepare(sql).get(values) as Row | undefined)
  }

  all<Row>(sql: string, values: Value[] = []): Row[] {
    return this.#run(() => this.#prepare(sql).all(values) as Row[])
  }

  /** Writes in its own transaction, or in the open one. */
  write(sql: string, values: Value[] = []): void {
    this.#run(() => void this.#prepare(sql).run(values))
  }

  /** Commits all writes of `body`, or none. */
  transaction<Result>(body: () => Result): Result {
    return this.#run(() => {
      this.#database.exec('BEGIN IMMEDIATE')
      try {
        const result = body()
        this.#database.exec('COMMIT')
        return result
      } catch (error) {
        if (this.#database.inTransaction) this.#database.exec('ROLLBACK')
        throw error
      }
    })
  }

  /** Resolves once everything that has been committed so far survives a power cut. */
  async durable(): Promise<void> {
    try {
      await this.#log.sync()
    } catch (error) {
      throw storageError(error)
    }
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#log.close()
    this.#statements.clear()
    try {
      // The driver closes the file only when every statement has been collected as garbage: release the lock before
      // that.
      this.#database.exec(
        'PRAGMA journal_mode = DELETE; PRAGMA locking_mode = NORMAL; SELECT 1 FROM sqlite_schema LIMIT 1',
      )
    } catch (error) {
      throw storageError(error)
    } finally {
      this.#database.close()
    }
  }

  #run<Result>(body: () => Result): Result {
    if (this.#closed) throw storeUnavailable('The SQLite store is closed. Use it before close(), or open it again.')
    try {
      return body()
    } catch (error) {
      throw StemworkError.is(error) ? error : storageError(error)
    }
  }

  #prepare(sql: string): Database.Statement {
    let statement = this.#statements.get(sql)
    if (!statement) this.#statements.set(sql, (statement = this.#database.prepare(sql)))
    return statement
  }

  #migrate(path: string, logger: Logger): void {
    const row = this.#database.prepare('PRAGMA user_version').get() as { user_version: number }
    const taken = row.user_version
    if (taken > migrations.length) {
      throw storeUnavailable(
        `The database was written by a newer version of this library (schema ${taken}; this one knows ` +
          `${migrations.length}). Update the library.`,
      )
    }
    if (taken > 0 && taken < migrations.length) {
      logger.info(
        {},
        'The job database is being upgraded. This takes up to a minute per GB; this process does nothing else then.',
      )
      // Otherwise temporary data would be in memory, as much as the file has.
      const folder = dirname(path).replaceAll("'", "''")
      this.#database.exec(`PRAGMA temp_store = FILE; PRAGMA temp_store_directory = '${folder}'`)
    }
    for (let step = taken; step < migrations.length; step++) {
      this.#database.exec(`BEGIN IMMEDIATE; ${migrations[step]}; PRAGMA user_version = ${step + 1}; COMMIT`)
    }
    this.#database.exec("PRAGMA temp_store = DEFAULT; PRAGMA temp_store_directory = ''")
  }
}

/**
 * Makes the file readable for its owner alone, and a missing folder too. SQLite gives the files beside it (`-wal`,
 * `-journal`) the same rights.
 */
function makePrivate(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  // Closing a file releases every lock that this process has on it, even that of another store.
  if (statSync(path, { throwIfNoEntry: false })?.isFile()) accessSync(path, constants.W_OK)
  else closeSync(openSync(path, 'a', 0o600))
  try {
    chmodSync(path, 0o600)
  } catch (error) {
    // The file belongs to another user, who shares it: its rights are not ours to change.
    if (codeOf(error) !== 'EPERM') throw error
  }
}

function heldByAnother(path: string, cause: unknown): StemworkError {
  return storeUnavailable(
    `The database file ${path} is in use: by another process, or by a store in this one that is not closed. Only one ` +
      'process can use a SQLite store at a time: stop the other, use another file, or use a store that processes ' +
      'share, such as Postgres.',
    { retryable: true, cause },
  )
}

/** @param path of the file, where it could not be opened */
function storageError(cause: unknown, path?: string): StemworkError {
  if (StemworkError.is(cause)) return cause
  const code = codeOf(cause)
  const said = explanations[code] ?? `The SQLite store failed with ${code}. Check the disk of the job database.`
  return storeUnavailable(path === undefined ? said : `${said} (${path})`, {
    retryable: code !== 'SQLITE_CORRUPT' && code !== 'SQLITE_NOTADB',
    cause,
    details: { code },
  })
}

const notMade =
  'The job database cannot be made or opened: this process may not use its file or its folder. Check who owns them ' +
  'and whether they can be written, or name another path.'

const isFull = 'The disk of the job database is full, or its quota used up. Free some space, then try again.'

const fileInTheWay = 'The job database cannot be made: a file is where its folder should be. Name another path.'

const explanations: Record<string, string> = {
  EACCES: notMade,
  EPERM: notMade,
  EROFS: notMade,
  ENOTDIR: fileInTheWay,
  EEXIST: fileInTheWay,
  EISDIR: 'The path of the job database is a folder. Name a file.',
  ENOSPC: isFull,
  EDQUOT: isFull,
  SQLITE_FULL: isFull,
  SQLITE_CORRUPT: 'The job database is damaged. Restore it from a backup, or move it away to begin a new one.',
  SQLITE_NOTADB: 'The file given for the job database is not a SQLite database. Name another file.',
  SQLITE_CANTOPEN:
    'The job database cannot be opened. Check that its folder exists and that the process may write there.',
  SQLITE_READONLY: 'The job database cannot be written. Check the permissions of its file and folder.',
}
