import { z } from 'zod'
import { storeUnavailable } from '../../../core/engine/errors.js'
import { deliverableAt, removableAt, waitingSince } from '../../../core/engine/job/due-times.js'
import { isTerminal, type JobRecord, jobRecordSchema } from '../../../core/engine/job/job.js'
import { resultBytes } from '../../../core/engine/job/result-bytes.js'
import { claim } from '../../../core/engine/job/transitions.js'
import type { Row } from './database.js'

/** Epoch milliseconds, by the database. */
export const clockSql = 'floor(extract(epoch from clock_timestamp()) * 1000)::bigint'

/** The same, read once per statement, so that an index can be searched for it. */
export const nowSql = `(SELECT ${clockSql})`

/**
 * An expression that keeps the commit of its statement from waiting for the disk. A server that fails in the next
 * moment loses the change as a whole, and never damages anything.
 */
export const quickCommitSql = `set_config('synchronous_commit', 'off', true)`

/** Width of `lease_bucket`, in milliseconds: about half a lease. Part of the schema. */
export const leaseBucketMs = 16_384

/** A job with the version of its row. */
export interface StoredJob {
  job: JobRecord
  version: number
}

const claimsSchema = z.array(
  z.object({ owner: z.string(), leaseMs: z.number(), nonce: z.string().default(''), at: z.number() }),
)

/** Reads a row that begins with `version, record, claims`. */
export function parseStored([version, record, claims]: Row): StoredJob {
  return { job: parseRecord(record, claims), version: Number(version) }
}

/**
 * The job: its record, and the claims that were granted since that was written.
 *
 * @throws StemworkError `STORE_UNAVAILABLE` for text that is no job record.
 */
export function parseRecord(record: string | null | undefined, claims: string | null | undefined): JobRecord {
  const written = parse(jobRecordSchema, record)
  if (typeof claims !== 'string') return written
  return parse(claimsSchema, claims).reduce((job, { at, ...request }) => claim(job, request, at) ?? job, written)
}

function parse<Schema extends z.ZodType>(schema: Schema, json: string | null | undefined): z.output<Schema> {
  const result = schema.safeParse(JSON.parse(json ?? 'null'))
  if (result.success) return result.data
  throw storeUnavailable(
    'A row of the jobs table is not a valid job record. Check what else writes to the table, and whether a newer ' +
      'version of the library uses the same database.',
    {
      cause: result.error,
      details: { problems: result.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`) },
    },
  )
}

/** Since when the job waits for a worker, if it is queued. */
export function waiting(job: JobRecord): number | null {
  return whole(waitingSince(job))
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

/** Bytes of the files that are removed then. */
export function removableBytes(job: JobRecord): number | null {
  return removableAt(job) === null ? null : resultBytes(job)
}

export function deliverable(job: JobRecord): number | null {
  return whole(deliverableAt(job))
}

/**
 * Postgres text cannot hold U+0000 or half of a surrogate pair. Only columns for searching are changed in this way,
 * never the record.
 */
export function columnText(text: string): string
export function columnText(text: string | null): string | null
export function columnText(text: string | null): string | null {
  return text === null ? null : Buffer.from(text.replaceAll('\0', '\uFFFD')).toString()
}

/** JSON that Postgres can look into: what `columnText` replaces, as `JSON.stringify` writes it, is replaced. */
export function readableJson(json: string): string {
  return json.replace(new RegExp(unreadable, 'g'), String.raw`$1\ufffd`)
}

/** The same in SQL, for an expression of type `json`. */
export function readableSql(json: string): string {
  return String.raw`regexp_replace(${json}::text, '${unreadable}', '\1\\ufffd', 'g')::json`
}

const unreadable = String.raw`(?<!\\)((?:\\\\)*)\\u(?:0000|d[89a-f][0-9a-f]{2})`

function whole(value: number | null): number | null {
  return value === null ? null : Math.round(value)
}
