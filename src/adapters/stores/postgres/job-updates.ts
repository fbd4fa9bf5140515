import { waitingSince } from '../../../core/engine/job/due-times.js'
import type { JobRecord } from '../../../core/engine/job/job.js'
import type { Usage } from '../../../core/engine/job/quota.js'
import type { PostgresPool, Send } from './database.js'
import {
  changing,
  columnText,
  definitionsOf,
  ending,
  quickCommitSql,
  type StoredJob,
  valuesIn,
  whole,
} from './job-row.js'
import { type PlannedFunction, plannedCall } from './planned-functions.js'
import { ledgerColumns, ledgerRows, ledgerText, settledSetting } from './postgres-ledger.js'
import { joinTurns } from './turns.js'
import { countingUsage } from './usage.js'

/** The end to write over a job, and the version and claim that it replaces. */
export interface ClaimedEnd {
  stored: StoredJob
  nonce: string
  next: JobRecord
}

/**
 * Writes the ends of claims that this process holds, many at once: true for each job that no one else has written in
 * between. Fenced like single changes.
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
      ...valuesIn(ending, next),
      ...valuesIn(ledgerColumns, next),
    }))
    const records = [...firsts.values()].map(({ next }) => JSON.stringify(next))
    const entries = [...firsts.values()].map(({ next }) => ledgerText(next) ?? '')
    const values = [JSON.stringify(rows), records.join('\n'), entries.join('\n')]
    const written = new Set((await write(values, (work) => work(run))).map(([id]) => id))
    return ends.map((end) => firsts.get(end.next.id) === end && written.has(columnText(end.next.id)))
  }
}

/**
 * Returns the ids of the ended jobs. Parameters: the ends as JSON and, in the same order and one per line, their
 * records and their entries of the ledger (empty: none). As part of the JSON, these would be parsed three times.
 */
export function claimedEnds(schema: string): PlannedFunction {
  const names = [...Object.keys(ending), ...Object.keys(ledgerColumns)]
  const ended = Object.keys(ending).map((name) => `${name} = e.${name}`)
  // Ids as an array, so that Postgres searches an index for each, however many it expects.
  const body = `BEGIN
    PERFORM set_config('${settledSetting}', 'here', true);
    RETURN QUERY
    WITH ended AS MATERIALIZED (
      SELECT * FROM ROWS FROM (
        json_to_recordset($1) AS (id text, version integer, held text, ${definitionsOf(ending)},
          ${definitionsOf(ledgerColumns)}),
        unnest(string_to_array($2, E'\\n'), string_to_array($3, E'\\n', ''))
      ) AS e(id, version, held, ${names.join(', ')}, record, entry)
    ),
    written AS (
      UPDATE ${schema}.jobs AS job SET version = job.version + 1, waiting_since = NULL, lease_until = NULL,
        nonce = NULL, claims = NULL, record = e.record::json, ${ended.join(', ')}
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
  const names = Object.keys(changing)
  const settings = names.map((name, at) => `${name} = $${at + 7}`).join(', ')
  const isDeleted = `$${names.indexOf('deleted') + 7}`
  const updated = (more = '') => `
    UPDATE ${schema}.jobs SET version = version + 1, waiting_since = $3, record = $4, nonce = $5, ${settings},
      claims = NULL${more}, idempotency_key = CASE WHEN ${isDeleted} THEN NULL ELSE idempotency_key END
    WHERE id = $1 AND version = $2 AND ($6::text IS NULL OR nonce = $6)`
  const update = updated()
  const durable = `${update} RETURNING id`
  const counting = countingUsage(schema, durable, ['$14', '$15', '$16'])
  const quick = `${update} AND ${quickCommitSql} = 'off' RETURNING id`
  // A job that waits for a worker with the labels of its next step has another pool.
  const itsList = `SELECT workflow, $15::text COLLATE "C" AS pool FROM ${schema}.jobs WHERE id = $1`
  const toWaiting = `WITH ${joinTurns(schema, '$14', itsList)} ${updated(', pool = $15')}`

  /**
   * Writes `next` over the version that was read; false if another write came in between.
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
    const waiting = whole(waitingSince(next))
    const claim = [next.lease?.nonce ?? null, nonce]
    const fixed = [columnText(job.id), version, waiting, JSON.stringify(next), ...claim]
    const values = [...fixed, ...Object.values(valuesIn(changing, next))]
    if (usage) {
      const counted = [columnText(next.app), usage.audioSeconds ?? 0, Math.round(usage.bytes ?? 0)]
      return (await run(counting, [...values, ...counted])).length > 0
    }
    const end = isRepeatable ? ` AND ${quickCommitSql} = 'off' RETURNING id` : ' RETURNING id'
    const rows =
      waiting === null
        ? await run(isRepeatable ? quick : durable, values)
        : await run(toWaiting + end, [...values, columnText(next.app), next.pool])
    return rows.length > 0
  }
}
