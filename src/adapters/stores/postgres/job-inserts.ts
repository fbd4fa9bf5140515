import type { StemworkError } from '../../../core/engine/errors.js'
import type { JobRecord } from '../../../core/engine/job/job.js'
import { alreadyExists } from '../../../core/engine/job/queue-limit.js'
import { type PostgresClient, query, sender, type Send } from './database.js'
import { columns, columnText, definitionsOf, nowSql, parseRecord, valuesIn } from './job-row.js'
import { joinTurns } from './turns.js'

export interface CreatedJob {
  job: JobRecord
  created: boolean
}

export type JobInserts = ReturnType<typeof jobInserts>

/**
 * A statement that adds those jobs whose id and idempotency key are free, and continues with `made`, their ids and
 * records.
 *
 * @param from.limit how many of the first are added
 */
export function insertJobs(schema: string, from: { app: string; jobs: string; limit?: string }, rest: string): string {
  const { app, jobs, limit = 'NULL' } = from
  const names = Object.keys(columns).join(', ')
  return `
    WITH clock AS MATERIALIZED (SELECT ${nowSql} AS now),
    input AS MATERIALIZED (
      SELECT * FROM json_to_recordset(${jobs}::json) AS i(${definitionsOf(columns)}, not_before bigint, record text)
      LIMIT ${limit}
    ), ${joinTurns(schema, app, 'SELECT DISTINCT workflow, pool FROM input')},
    made AS (INSERT INTO ${schema}.jobs (${names}, version, app, created_at, waiting_since, record)
    SELECT ${names}, 1, ${app}, now, CASE WHEN status = 'QUEUED' AND NOT deleted THEN greatest(now, not_before) END,
      ('{"createdAt":' || now || ',' || substr(record, 2))::json
    FROM input, clock
    ON CONFLICT DO NOTHING
    RETURNING id, record) ${rest}`
}

/** Statements that add jobs. */
export function jobInserts(schema: string, idempotencyMs: number) {
  const insert = insertJobs(schema, { app: '$1', jobs: '$2' }, 'SELECT id, record FROM made')

  /** Adds those jobs of one application whose id and idempotency key are free; `undefined` stands for the others. */
  async function insertFree(run: Send, app: string, jobs: readonly JobRecord[]): Promise<(JobRecord | undefined)[]> {
    const rows = await run(insert, [columnText(app), JSON.stringify(jobs.map(rowOf))])
    const made = new Map(rows.map(([id, record]) => [id, record]))
    return jobs.map((job) => {
      const id = columnText(job.id)
      const record = made.get(id)
      // Only once, in case a batch holds an id twice.
      made.delete(id)
      return record === undefined ? undefined : parseRecord(record, null)
    })
  }

  /** The job that has the idempotency key, and whether the key is still valid. */
  async function findHolder(
    client: PostgresClient,
    app: string,
    key: string,
  ): Promise<{ id: string | null | undefined; job: JobRecord; holds: boolean } | undefined> {
    const [found] = await query(
      client,
      `SELECT record, claims, created_at + $3 > ${nowSql}, id FROM ${schema}.jobs WHERE app = $1 AND ` +
        'idempotency_key = $2',
      [columnText(app), columnText(key), idempotencyMs],
    )
    if (!found) return undefined
    const [record, claims, holds, id] = found
    return { id, job: parseRecord(record, claims), holds: holds === 't' }
  }

  /** Returns the job that holds the idempotency key, if that is still valid; else takes the key from it. */
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
     * @param refusal returns why no further job may be added; called before the key is looked up, so that it never
     * hides a job that was added under this key in between
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
        const [made] = await insertFree(sender(client), job.app, [job])
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

/** The columns of a new job; the database adds `createdAt` to its record. */
export function rowOf(job: JobRecord) {
  return {
    ...valuesIn(columns, job),
    not_before: Math.round(job.notBefore),
    record: JSON.stringify({ ...job, createdAt: undefined }),
  }
}
