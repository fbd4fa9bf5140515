import { z } from 'zod'
import { storeUnavailable } from '../../../core/engine/errors.js'
import { deliverableAt, removableAt } from '../../../core/engine/job/due-times.js'
import { isTerminal, type JobRecord, jobRecordSchema } from '../../../core/engine/job/job.js'
import { recordBytes } from '../../../core/engine/job/record-bytes.js'
import { resultBytes } from '../../../core/engine/job/result-bytes.js'
import { searchText } from '../../../core/engine/job/search-text.js'
import { claim } from '../../../core/engine/job/transitions.js'
import type { Row } from './database.js'

/** Epoch milliseconds, by the database. */
export const clockSql = 'floor(extract(epoch from clock_timestamp()) * 1000)::bigint'

/** Like `clockSql`, but read once per statement, so that an index can be searched for it. */
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
 * Returns the job: its record, with the claims that were granted since it was written.
 *
 * @throws StemworkError `STORE_UNAVAILABLE` for text that is not a job record.
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

/** Columns that follow from the record, each with its type and value. */
export type Columns = Readonly<Record<string, readonly [type: string, valueOf: (job: JobRecord) => unknown]>>

const lasting: Columns = {
  id: ['text', ({ id }) => columnText(id)],
  workflow: ['text', ({ workflow }) => columnText(workflow)],
  batch_name: ['text', ({ batchName }) => columnText(batchName)],
  upload_keys: ['text[]', ({ uploads }) => uploadKeys(Object.values(uploads))],
  idempotency_key: ['text', ({ idempotency }) => columnText(idempotency?.key ?? null)],
  rank: ['smallint', ({ priority }) => -priority],
  deadline: ['bigint', ({ deadline }) => whole(deadline)],
  pool: ['text', ({ pool }) => pool],
  search: ['text', searchText],
  record_bytes: ['integer', recordBytes],
}

/** Columns of a job that ends. */
export const ending: Columns = {
  status: ['text', ({ status }) => status],
  // Null also for a deleted job, whose row waits until its files are gone.
  ended_at: ['bigint', (job) => (job.deleted || !isTerminal(job) ? null : whole(job.completedAt))],
  removable_at: ['bigint', (job) => whole(removableAt(job))],
  // Bytes of the files that are removed then.
  result_bytes: ['bigint', (job) => (removableAt(job) === null ? null : resultBytes(job))],
  deliverable_at: ['bigint', (job) => whole(deliverableAt(job))],
}

export const changing: Columns = {
  ...ending,
  deleted: ['boolean', ({ deleted }) => deleted],
  lease_until: ['bigint', ({ deleted, lease }) => (deleted || lease === null ? null : whole(lease.until))],
}

/** Columns of a new job, without those for which the database's time is needed. */
export const columns: Columns = { ...lasting, ...changing }

export function valuesIn(table: Columns, job: JobRecord): Record<string, unknown> {
  const values: Record<string, unknown> = {}
  // `Object.fromEntries` takes twice as long.
  for (const name in table) values[name] = table[name]?.[1](job)
  return values
}

/** Definitions such as `id text, status text`. */
export function definitionsOf(table: Columns): string {
  return Object.entries(table)
    .map(([name, [type]]) => `${name} ${type}`)
    .join(', ')
}

function uploadKeys(keys: readonly string[]): string[] | null {
  return keys.length === 0 ? null : keys.map((key) => columnText(key))
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

/** JSON that Postgres can look into: the escapes of all characters that `columnText` replaces are replaced. */
export function readableJson(json: string): string {
  return json.replace(new RegExp(unreadable, 'g'), String.raw`$1\ufffd`)
}

/** `readableJson` in SQL, for an expression of type `json`. */
export function readableSql(json: string): string {
  return String.raw`regexp_replace(${json}::text, '${unreadable}', '\1\\ufffd', 'g')::json`
}

const unreadable = String.raw`(?<!\\)((?:\\\\)*)\\u(?:0000|d[89a-f][0-9a-f]{2})`

export function whole(value: number | null): number | null {
  return value === null ? null : Math.round(value)
}
