import { StemworkError } from '../../../core/engine/errors.js'
import type { JobRecord } from '../../../core/engine/job/job.js'
import { arrayOf, type PostgresClient, query, type Row } from './database.js'
import { copyRecord } from '../shared/record-copy.js'
import { columnText, deliverable, endedAt, leaseUntil, nowSql, parseRecord, removable } from './job-row.js'

export interface CreatedJob {
  job: JobRecord
  created: boolean
}

/** A job on its way into the table. */
export interface NewJob {
  job: JobRecord
  /** Its text without `createdAt`, which the database sets. */
  undated: string
}

export function newJob(given: JobRecord): NewJob {
  const job = copyRecord(given)
  // Not a copy without the field: records of one shape are what makes this fast.
  const undated = JSON.stringify(Object.assign(job, { createdAt: undefined }))
  job.createdAt = given.createdAt
  return { job, undated }
}

export type JobInserts = ReturnType<typeof jobInserts>

/** Statements that add jobs. */
export function jobInserts(schema: string, idempotencyMs: number) {
  const insert = `
    WITH clock AS MATERIALIZED (SELECT ${nowSql} AS now),
    input AS (
      SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::boolean[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[],
        $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], string_to_array($14, E'\\n'))
      AS i(id, app, status, deleted, workflow, batch_name, upload_keys, idempotency_key, not_before, lease_until, ended_at, removable_at, deliverable_at, record)
    ),
    made AS (
      INSERT INTO ${schema}.jobs (id, version, app, status, deleted, workflow, batch_name, upload_keys, idempotency_key, created_at, waiting_since,
        lease_until, ended_at, removable_at, deliverable_at, record)
      SELECT id, 1, app, status, deleted, workflow, batch_name,
        CASE WHEN upload_keys IS NOT NULL THEN ARRAY(SELECT json_array_elements_text(upload_keys::json)) END,
        idempotency_key, now, CASE WHEN status = 'QUEUED' AND NOT deleted THEN greatest(now, not_before) END,
        lease_until, ended_at, removable_at, deliverable_at, ('{"createdAt":' || now || ',' || substr(record, 2))::json
      FROM input, clock
      ON CONFLICT DO NOTHING
      RETURNING id, app, status, deleted, created_at
    ),
    counted AS (
      INSERT INTO ${schema}.job_counts (app, status, delta) SELECT app, status, count(*) FROM made WHERE NOT deleted GROUP BY app, status
    )
    SELECT id, created_at FROM made`

  /** Adds those jobs whose id and idempotency key are free, in one statement; `undefined` stands for the others. */
  async function insertFree(
    run: (text: string, values: unknown[]) => Promise<Row[]>,
    jobs: readonly NewJob[],
  ): Promise<(number | undefined)[]> {
    const records = jobs.map(({ job }) => job)
    const rows = await run(insert, [
      arrayOf(records.map((job) => columnText(job.id))),
      arrayOf(records.map((job) => columnText(job.app))),
      arrayOf(records.map((job) => job.status)),
      arrayOf(records.map((job) => job.deleted)),
      arrayOf(records.map((job) => columnText(job.workflow))),
      arrayOf(records.map((job) => columnText(job.batchName))),
      arrayOf(records.map((job) => uploadKeys(job))),
      arrayOf(records.map((job) => columnText(job.idempotency?.key ?? null))),
      arrayOf(records.map((job) => Math.round(job.notBefore))),
      arrayOf(records.map(leaseUntil)),
      arrayOf(records.map(endedAt)),
      arrayOf(records.map(removable)),
      arrayOf(records.map(deliverable)),
      jobs.map(({ undated }) => undated).join('\n'),
    ])
    const made = new Map(rows.map(([id, createdAt]) => [id, Number(createdAt)]))
    return records.map((job) => {
      const createdAt = made.get(columnText(job.id))
      // Once, should a batch hold one id twice.
      made.delete(columnText(job.id))
      return createdAt
    })
  }

  /** The job that has the idempotency key, and whether the key's time has not passed. */
  async function findHolder(
    client: PostgresClient,
    app: string,
    key: string,
  ): Promise<{ id: string | null | undefined; job: JobRecord; holds: boolean } | undefined> {
    const [found] = await query(
      client,
      `SELECT record, created_at + $3 > ${nowSql}, id FROM ${schema}.jobs WHERE app = $1 AND idempotency_key = $2`,
      [columnText(app), columnText(key), idempotencyMs],
    )
    return found && { id: found[2], job: parseRecord(found[0]), holds: found[1] === 't' }
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
      added: NewJob,
      refusal?: () => Promise<StemworkError | undefined>,
    ): Promise<CreatedJob> {
      const { job } = added
      for (;;) {
        const refused = await refusal?.()
        const holder = await holderOfKey(client, job)
        if (holder) return { job: holder, created: false }
        if (refused) throw refused
        const [createdAt] = await insertFree((text, values) => query(client, text, values), [added])
        if (createdAt !== undefined) return { job: { ...copyRecord(job), createdAt }, created: true }
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

function uploadKeys(job: JobRecord): string | null {
  const keys = Object.values(job.uploads).map((key) => columnText(key))
  return keys.length === 0 ? null : JSON.stringify(keys)
}
