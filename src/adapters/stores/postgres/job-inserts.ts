import { StemworkError } from '../../../core/engine/errors.js'
import type { JobRecord } from '../../../core/engine/job/job.js'
import { type PostgresClient, query, type Row } from './database.js'
import { columnText, deliverable, endedAt, leaseUntil, nowSql, parseRecord, removable } from './job-row.js'
import { joinTurns } from './turns.js'

export interface CreatedJob {
  job: JobRecord
  created: boolean
}

export type JobInserts = ReturnType<typeof jobInserts>

/** Statements that add jobs. */
export function jobInserts(schema: string, idempotencyMs: number) {
  // The database sets `createdAt`, the first field of the record's text.
  const insert = `
    WITH clock AS MATERIALIZED (SELECT ${nowSql} AS now), ${joinTurns(schema, '$2')}
    INSERT INTO ${schema}.jobs (id, version, app, status, deleted, workflow, batch_name, upload_keys, idempotency_key, created_at, waiting_since,
      lease_until, ended_at, removable_at, deliverable_at, record)
    SELECT $1, 1, $2, $3, $4, $5, $6, $7::text[], $8, now, CASE WHEN $3 = 'QUEUED' AND NOT $4 THEN greatest(now, $9::bigint) END,
      $10, $11, $12, $13, ('{"createdAt":' || now || ',' || substr($14, 2))::json
    FROM clock
    ON CONFLICT DO NOTHING
    RETURNING created_at, record`

  /** Adds the job if its id and idempotency key are free. */
  async function insertFree(
    run: (text: string, values: unknown[]) => Promise<Row[]>,
    given: JobRecord,
  ): Promise<JobRecord | undefined> {
    // Without its `createdAt`, which the database sets.
    const { createdAt: _createdAt, ...job } = given
    const [row] = await run(insert, [
      columnText(job.id),
      columnText(job.app),
      job.status,
      job.deleted,
      columnText(job.workflow),
      columnText(job.batchName),
      uploadKeys(given),
      columnText(job.idempotency?.key ?? null),
      Math.round(job.notBefore),
      leaseUntil(given),
      endedAt(given),
      removable(given),
      deliverable(given),
      JSON.stringify(job),
    ])
    return row && parseRecord(row[1], null)
  }

  /** The job that has the idempotency key, and whether the key's time has not passed. */
  async function findHolder(
    client: PostgresClient,
    app: string,
    key: string,
  ): Promise<{ id: string | null | undefined; job: JobRecord; holds: boolean } | undefined> {
    const [found] = await query(
      client,
      `SELECT record, claims, created_at + $3 > ${nowSql}, id FROM ${schema}.jobs WHERE app = $1 AND idempotency_key = $2`,
      [columnText(app), columnText(key), idempotencyMs],
    )
    if (!found) return undefined
    const [record, claims, holds, id] = found
    return { id, job: parseRecord(record, claims), holds: holds === 't' }
  }

  /** The job that holds the idempotency key, if its time has not passed; else takes the key from it. */
  async function holderOfKey(client: PostgresClient, { app, idempotency }: JobRecord): Promise<JobRecord | undefined> {
    if (!idempotency) return undefined
    const holder = await findHolder(client, app, idempotency.key)
    if (!holder || holder.holds) return holder?.job
    await query(
      client,
      `UPDATE ${schema}.jobs SET idempotency_key = NULL WHERE id = $3 AND app = $1 AND idempotency_key = $2`,
      [columnText(app), columnText(idempotency.key), holder.id],
    )
    return undefined
  }

  return {
    insertFree,

    findHolder,

    /**
     * Adds the job, or finds out why it cannot be added.
     *
     * @param refusal why no further job may be added; asked before the key is looked up, so that it never hides a job that was
     * added under this key in between
     */
    async insertOrFind(
      client: PostgresClient,
      job: JobRecord,
      refusal?: () => Promise<StemworkError | undefined>,
    ): Promise<CreatedJob> {
      for (;;) {
        const refused = await refusal?.()
        const holder = await holderOfKey(client, job)
        if (holder) return { job: holder, created: false }
        if (refused) throw refused
        const made = await insertFree((text, values) => query(client, text, values), job)
        if (made) return { job: made, created: true }
        // Either the id is taken, or another call took the key in between: then the next round finds its job.
        const [taken] = await query(client, `SELECT idempotency_key FROM ${schema}.jobs WHERE id = $1`, [
          columnText(job.id),
        ])
        if (taken && (job.idempotency === null || taken[0] !== columnText(job.idempotency.key)))
          throw alreadyExists(job.id)
      }
    },
  }
}

export function alreadyExists(id: string): StemworkError {
  return new StemworkError('ALREADY_EXISTS', `A job with the id ${id} exists already. Give each job an id of its own.`)
}

function uploadKeys(job: JobRecord): string[] | null {
  const keys = Object.values(job.uploads).map((key) => columnText(key))
  return keys.length === 0 ? null : keys
}
