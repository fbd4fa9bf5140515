import { deliverableAt, lapsesAt, removableAt, waitingSince } from '../../../core/engine/job/due-times.js'
import { type JobRecord, jobRecordSchema } from '../../../core/engine/job/job.js'
import { alreadyExists } from '../../../core/engine/job/queue-limit.js'
import { recordBytes } from '../../../core/engine/job/record-bytes.js'
import { resultBytes } from '../../../core/engine/job/result-bytes.js'
import { searchText } from '../../../core/engine/job/search-text.js'
import { UnreadableRows } from '../shared/unreadable-rows.js'
import type { Sql } from './job-query.js'
import { parseRecord } from './record.js'
import type { SqliteDatabase, Value } from './sqlite-database.js'

export interface FoundRow {
  id: string
  record: string
}

type Columns = Record<string, (job: JobRecord) => Value>

const lasting: Columns = {
  id: ({ id }) => id,
  app: ({ app }) => app,
  created_at: ({ createdAt }) => createdAt,
  workflow: ({ workflow }) => workflow,
  batch_name: ({ batchName }) => batchName,
  rank: ({ priority }) => -priority,
  deadline: ({ deadline }) => deadline,
  idempotency_key: ({ idempotency }) => idempotency?.key ?? null,
  search: searchText,
  record_bytes: recordBytes,
}
const changing: Columns = {
  pool: ({ pool }) => pool,
  status: ({ status }) => status,
  deleted: ({ deleted }) => (deleted ? 1 : 0),
  waiting_since: waitingSince,
  lapses_at: lapsesAt,
  removable_at: removableAt,
  result_bytes: (job) => (removableAt(job) === null ? null : resultBytes(job)),
  deliverable_at: deliverableAt,
  completed_at: ({ completedAt }) => completedAt,
}
const all = { ...lasting, ...changing }

const columnNames = [...Object.keys(all), 'record']
const insert = `INSERT INTO jobs (${columnNames.join(', ')}) VALUES (${columnNames.map(() => '?').join(', ')})`
const update = `UPDATE jobs SET ${Object.keys(changing)
  .map((name) => `${name} = ?`)
  .join(', ')}, record = ?,
  idempotency_key = iif(?, idempotency_key, NULL) WHERE id = ?`
/** The commonest write, a heartbeat, touches one index instead of all. */
const renew = 'UPDATE jobs SET lapses_at = ?, record = ? WHERE id = ?'
const joinTurns = 'INSERT OR IGNORE INTO turns (app, served) VALUES (?, 0)'

export type JobRows = ReturnType<typeof jobRows>

/** The rows of jobs: the record, with columns for searching and ordering. */
export function jobRows(database: SqliteDatabase) {
  const unreadable = new UnreadableRows()

  /** Parses rows: a damaged record is an error of its own job only. */
  const readable = (rows: readonly FoundRow[]) =>
    unreadable.readable(
      rows,
      ({ id }) => id,
      ({ record }) => parse(record),
    )

  /** The first of these IDs for which there is a row. */
  const firstOf = (ids: readonly string[]) => {
    const sql = 'SELECT id FROM jobs WHERE id IN (SELECT value FROM json_each(?)) LIMIT 1'
    return database.get<{ id: string }>(sql, [JSON.stringify(ids)])?.id
  }

  /** Inserts the rows of a job and returns its record as stored. */
  const insertRow = (job: JobRecord) => {
    const { id, app, uploads } = job
    const record = JSON.stringify(job)
    database.write(insert, [...valuesOf(all, job), record])
    if (waitingSince(job) !== null) database.write(joinTurns, [app])
    for (const key of new Set(Object.values(uploads)))
      database.write('INSERT INTO job_uploads (job_id, upload_key) VALUES (?, ?)', [id, key])
    return record
  }

  return {
    readable,
    firstOf,
    insert: insertRow,

    /** IDs of jobs that were found and could not be read. */
    get unreadable() {
      return unreadable.ids
    },

    /** Reads a job, even one marked deleted. */
    read(id: string): JobRecord | undefined {
      const row = database.get<FoundRow>('SELECT record FROM jobs WHERE id = ?', [id])
      return row && parse(row.record)
    },

    /** Returns the jobs that the statement finds; unreadable ones are passed to it, and others come instead. */
    select(statementWithout: (unreadable: readonly string[]) => Sql): JobRecord[] {
      for (;;) {
        const { text, values } = statementWithout(unreadable.ids)
        const rows = database.all<FoundRow>(text, values)
        const jobs = readable(rows)
        if (jobs.length === rows.length) return jobs
      }
    },

    /** @throws StemworkError `ALREADY_EXISTS`. */
    add(job: JobRecord): JobRecord {
      if (firstOf([job.id]) !== undefined) throw alreadyExists(job.id)
      return parse(insertRow(job))
    },

    /** @param isHeartbeat whether nothing changed but the record and the lease */
    replace(job: JobRecord, isHeartbeat = false): JobRecord {
      const record = JSON.stringify(job)
      if (isHeartbeat) database.write(renew, [lapsesAt(job), record, job.id])
      else database.write(update, [...valuesOf(changing, job), record, job.idempotency ? 1 : 0, job.id])
      if (waitingSince(job) !== null) database.write(joinTurns, [job.app])
      return parse(record)
    },
  }
}

export function parse(record: string): JobRecord {
  return parseRecord(jobRecordSchema, record)
}

function valuesOf(columns: Columns, job: JobRecord): Value[] {
  return Object.values(columns).map((valueOf) => valueOf(job))
}
