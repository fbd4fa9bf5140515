import { StemworkError } from '../../../core/engine/errors.js'
import { claimableAt, deliverableAt, removableAt } from '../../../core/engine/job/due-times.js'
import { isTerminal, type JobRecord, jobRecordSchema, type JobStatus } from '../../../core/engine/job/job.js'
import type { Row } from './database.js'

/** Epoch milliseconds, by the database. */
export const nowSql = 'floor(extract(epoch from clock_timestamp()) * 1000)::bigint'

/** A job with the version of its row. */
export interface StoredJob {
  job: JobRecord
  version: number
}

/** @throws StemworkError `STORE_UNAVAILABLE` for text that is no job record. */
export function parseRecord(json: string | null | undefined): JobRecord {
  const result = jobRecordSchema.safeParse(JSON.parse(json ?? 'null'))
  if (result.success) return result.data
  throw new StemworkError(
    'STORE_UNAVAILABLE',
    'A row of the jobs table does not hold a job record. Look for what else writes to the table, or for a newer version of the library on the same database.',
    {
      cause: result.error,
      details: { problems: result.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`) },
    },
  )
}

/** Reads a row of `version, record`. */
export function parseStored([version, record]: Row): StoredJob {
  return { job: parseRecord(record), version: Number(version) }
}

/** When the job is in turn for a worker, if it is queued. */
export function waitingSince(job: JobRecord): number | null {
  return job.status === 'QUEUED' ? whole(claimableAt(job)) : null
}

export function leaseUntil(job: JobRecord): number | null {
  return job.deleted || job.lease === null ? null : whole(job.lease.until)
}

/** When the job ended; null also for a deleted one, whose row waits until its files are gone. */
export function endedAt(job: JobRecord): number | null {
  return job.deleted || !isTerminal(job) ? null : whole(job.completedAt)
}

export function removable(job: JobRecord): number | null {
  return whole(removableAt(job))
}

export function deliverable(job: JobRecord): number | null {
  return whole(deliverableAt(job))
}

/** The status under which lists and counts show the job. */
export function shownStatus(job: JobRecord): JobStatus | null {
  return job.deleted ? null : job.status
}

/** Postgres text holds every character but U+0000. Only columns that are searched by are changed so, never the record. */
export function columnText(text: string): string
export function columnText(text: string | null): string | null
export function columnText(text: string | null): string | null {
  return text !== null && text.includes('\0') ? text.replaceAll('\0', '\uFFFD') : text
}

function whole(value: number | null): number | null {
  return value === null ? null : Math.round(value)
}
