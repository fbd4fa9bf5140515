import type { JobRecord } from '../../../core/engine/job/job.js'
import type { Usage } from '../../../core/engine/job/quota.js'
import type { PostgresPool, Send } from './database.js'
import {
  columnText,
  deliverable,
  endedAt,
  leaseUntil,
  quickCommitSql,
  removable,
  removableBytes,
  type StoredJob,
  waiting,
} from './job-row.js'
import { type PlannedFunction, plannedCall } from './planned-functions.js'
import { ledgerColumns, ledgerColumnTypes, ledgerRows, ledgerText, settledSetting } from './postgres-ledger.js'
import { joinTurns } from './turns.js'
import { countingUsage } from './usage.js'

/** What is written over a job, and over which version of which claim. */
export interface ClaimedEnd {
  stored: StoredJob
  nonce: string
  next: JobRecord
}

/**
 * Writes the ends of claims that this process holds, many at once: true for each that nobody else has written in
 * between. Fenced as single changes are.
 */
export function jobEnds(pool: PostgresPool, schema: string) {
  const write = plannedCall(pool, schema, claimedEnds(schema))
  return async function end(run: Send, ends: readonly ClaimedEnd[]): Promise<boolean[]> {
    // Of several ends of one claim only the first can be written.
    const firsts = new Map([...ends].reverse().map((end) => [end.next.id, end]))
    const rows = [...firsts.values()].map(({ stored, nonce, next }) => ({
      id: columnText(next.id),
      version: stored.version,
      held: nonce,
      status: next.status,
      ended_at: endedAt(next),
      removable_at: removable(next),
      deliverable_at: deliverable(next),
      result_bytes: removableBytes(next),
      ...ledgerColumns(next),
    }))
    const records = [...firsts.values()].map(({ next }) => JSON.stringify(next))
    const entries = [...firsts.values()].map(({ next }) => ledgerText(next) ?? '')
    const values = [JSON.stringify(rows), records.join('\n'), entries.join('\n')]
    const written = new Set((await write(values, (work) => work(run))).map(([id]) => id))
    return ends.map((end) => firsts.get(end.next.id) === end && written.has(columnText(end.next.id)))
  }
}

/** Columns of an end, other than its two long texts. */
const endColumns = {
  id: 'text',
  version: 'integer',
  held: 'text',
  status: 'text',
  ended_at: 'bigint',
  removable_at: 'bigint',
  deliverable_at: 'bigint',
  result_bytes: 'bigint',
  ...ledgerColumnTypes,
}

/**
 * Rows of the ids of the jobs that were ended. Parameters: the ends, as JSON, and in their order, in a line each, their
 * records and their entries of the ledger (empty: none). As part of the JSON, these would be parsed three times.
 */
export function claimedEnds(schema: string): PlannedFunction {
  const types = Object.entries(endColumns).map(([name, type]) => `${name} ${type}`)
  // Ids as an array, so that Postgres searches an index for each, however many it expects.
  const body = `BEGIN
    PERFORM set_config('${settledSetting}', 'here', true);
    RETURN QUERY
    WITH ended AS MATERIALIZED (
      SELECT * FROM ROWS FROM (
        json_to_recordset($1) AS (${types.join(', ')}),
        unnest(string_to_array($2, E'\\n'), string_to_array($3, E'\\n', ''))
      ) AS e(${Object.keys(endColumns).join(', ')}, record, entry)
    ),
    written AS (
      UPDATE ${schema}.jobs AS job SET version = job.version + 1, status = e.status, waiting_since = NULL,
        lease_until = NULL, ended_at = e.ended_at, removable_at = e.removable_at, deliverable_at = e.deliverable_at,
        record = e.record::json, nonce = NULL, result_bytes = e.result_bytes, claims = NULL
      FROM ended AS e
      WHERE job.id = ANY(ARRAY(SELECT id FROM ended)) AND job.id = e.id AND job.version = e.version AND NOT job.deleted
        AND job.nonce = e.held
      RETURNING job.id, job.app, job.workflow, job.status, job.ended_at, e.entry_id, e.audio_seconds,
        e.bytes, e.processor_seconds, e.entry
    ),
    settled AS (
      INSERT INTO ${schema}.ledger ${ledgerRows('written')}
    )
    SELECT written.id::text FROM written;
    PERFORM set_config('${settledSetting}', '', true);
    END`
  return { name: 'end_claims', body, parameters: 'json, text, text', columns: 'text' }
}

/**
 * The statement that changes a job. A row's version rises with every write, and so with every claim: comparing it is
 * the fence that a superseded worker cannot pass, and what makes a record computed outside the database as safe as one
 * under a lock.
 */
export function jobUpdates(schema: string) {
  const updated = (more = '') => `
    UPDATE ${schema}.jobs SET version = version + 1, status = $3, deleted = $4, waiting_since = $5, lease_until = $6,
      ended_at = $7, removable_at = $8, deliverable_at = $9, record = $10, nonce = $11, result_bytes = $13,
      claims = NULL${more},
      idempotency_key = CASE WHEN $4 THEN NULL ELSE idempotency_key END
    WHERE id = $1 AND version = $2 AND ($12::text IS NULL OR nonce = $12)`
  const update = updated()
  const durable = `${update} RETURNING id`
  const counting = countingUsage(schema, durable, ['$14', '$15', '$16'])
  const quick = `${update} AND ${quickCommitSql} = 'off' RETURNING id`
  // A job that waits for what its next step needs has another pool.
  const itsList = `SELECT workflow, $15::text COLLATE "C" AS pool FROM ${schema}.jobs WHERE id = $1`
  const toWaiting = `WITH ${joinTurns(schema, '$14', itsList)} ${updated(', pool = $15')}`

  /**
   * Writes `next` instead of what was read; false if somebody has written it in between.
   *
   * @param options.usage counted in the same write; only with changes that end a job
   * @param options.nonce of the claim, if the job was not read just now: a database that lost its last commits counts
   * versions twice
   */
  return async function replace(
    run: Send,
    { job, version }: StoredJob,
    next: JobRecord,
    { isRepeatable, nonce = null, usage }: { isRepeatable: boolean; nonce?: string | null; usage?: Partial<Usage> },
  ): Promise<boolean> {
    const waitingSince = waiting(next)
    const values = [
      columnText(job.id),
      version,
      next.status,
      next.deleted,
      waitingSince,
      leaseUntil(next),
      endedAt(next),
      removable(next),
      deliverable(next),
      JSON.stringify(next),
      next.lease?.nonce ?? null,
      nonce,
      removableBytes(next),
    ]
    if (usage) {
      const counted = [columnText(next.app), usage.audioSeconds ?? 0, Math.round(usage.bytes ?? 0)]
      return (await run(counting, [...values, ...counted])).length > 0
    }
    const end = isRepeatable ? ` AND ${quickCommitSql} = 'off' RETURNING id` : ' RETURNING id'
    const rows =
      waitingSince === null
        ? await run(isRepeatable ? quick : durable, values)
        : await run(toWaiting + end, [...values, columnText(next.app), next.pool])
    return rows.length > 0
  }
}
