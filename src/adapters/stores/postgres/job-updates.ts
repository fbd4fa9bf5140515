import type { JobRecord } from '../../../core/engine/job/job.js'
import { arrayOf, type Row } from './database.js'
import {
  columnText,
  deliverable,
  endedAt,
  leaseUntil,
  nowSql,
  removable,
  shownStatus,
  waitingSince,
} from './job-row.js'

/** One record in the place of another, if nobody has written it in between. */
export interface Replacement {
  previous: JobRecord
  /** Version of the row that `previous` was read from. */
  version: number
  next: JobRecord
  /** Text of `next`. */
  json: string
}

/**
 * The statement that changes jobs. A row's version rises with every write, and so with every claim: comparing it is the fence
 * that a superseded worker cannot pass, and what makes a record computed outside the database as safe as one under a lock.
 */
export function jobUpdates(schema: string) {
  const update = `
    WITH input AS (
      SELECT * FROM unnest($1::int[], $2::text[], $3::int[], $4::text[], $5::boolean[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[],
        $11::text[], $12::text[], string_to_array($13, E'\\n'))
      AS i(place, id, version, status, deleted, waiting_since, lease_until, ended_at, removable_at, deliverable_at, was, shown, record)
    ),
    changed AS (
      UPDATE ${schema}.jobs AS j SET version = j.version + 1, status = i.status, deleted = i.deleted, waiting_since = i.waiting_since, lease_until = i.lease_until,
        ended_at = i.ended_at, removable_at = i.removable_at, deliverable_at = i.deliverable_at, record = i.record::json,
        idempotency_key = CASE WHEN i.deleted THEN NULL ELSE j.idempotency_key END
      FROM input i WHERE j.id = i.id AND j.version = i.version
      RETURNING i.place, j.app, i.was, i.shown
    ),
    counted AS (
      INSERT INTO ${schema}.job_counts (app, status, delta)
      SELECT app, status, sum(delta) FROM (
        SELECT app, was AS status, -1 AS delta FROM changed WHERE was IS NOT NULL
        UNION ALL SELECT app, shown, 1 FROM changed WHERE shown IS NOT NULL
      ) AS moves GROUP BY app, status HAVING sum(delta) <> 0
    )
    SELECT place, ${nowSql} FROM changed`

  /** Says for each replacement whether it was made. */
  return async function replace(
    run: (text: string, values: unknown[]) => Promise<Row[]>,
    replacements: readonly Replacement[],
    onTime: (epochMs: number) => void,
  ): Promise<boolean[]> {
    // In the order of ids: statements that lock rows in one order do not block each other for good.
    const sorted = [...replacements.entries()].sort(([, a], [, b]) => (a.next.id < b.next.id ? -1 : 1))
    const column = (value: (replacement: Replacement) => string | number | boolean | null) =>
      arrayOf(sorted.map(([, replacement]) => value(replacement)))
    const rows = await run(update, [
      arrayOf(sorted.map(([place]) => place)),
      column(({ next }) => columnText(next.id)),
      column(({ version }) => version),
      column(({ next }) => next.status),
      column(({ next }) => next.deleted),
      column(({ next }) => waitingSince(next)),
      column(({ next }) => leaseUntil(next)),
      column(({ next }) => endedAt(next)),
      column(({ next }) => removable(next)),
      column(({ next }) => deliverable(next)),
      column(({ previous }) => shownStatus(previous)),
      column(({ next }) => shownStatus(next)),
      sorted.map(([, { json }]) => json).join('\n'),
    ])
    const made = replacements.map(() => false)
    for (const [place, now] of rows) {
      made[Number(place)] = true
      onTime(Number(now))
    }
    return made
  }
}
