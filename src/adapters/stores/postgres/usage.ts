import { dayMs, type Usage } from '../../../core/engine/job/quota.js'
import type { Row, Send } from './database.js'
import { columnText, nowSql } from './job-row.js'

/** Today, by the database. */
const daySql = `(${nowSql} / ${dayMs})`

/**
 * Makes a statement that ends a job also count the job's usage, in the same write. `changed` makes the change and
 * returns a row if it was made.
 */
export function countingUsage(
  schema: string,
  changed: string,
  [app, seconds, bytes]: [string, string, string],
): string {
  return `WITH changed AS (${changed}), counted AS (
      INSERT INTO ${schema}.usage AS u (app, day, jobs, audio_seconds, bytes)
      SELECT ${app}, ${daySql}, 0, ${seconds}::double precision, ${bytes}::bigint FROM changed
      ON CONFLICT (app, day) DO UPDATE SET audio_seconds = u.audio_seconds + excluded.audio_seconds,
        bytes = u.bytes + excluded.bytes
    ) SELECT id FROM changed`
}

/** A query for the time and today's usage of the application. */
export function readUsage(schema: string, app: string): string {
  return `SELECT ${nowSql}, coalesce(jobs, 0), coalesce(audio_seconds, 0), coalesce(bytes, 0) FROM (SELECT 1) AS one
    LEFT JOIN ${schema}.usage ON app = ${app} AND day = ${daySql}`
}

/** A statement that counts jobs that were added. */
export function addUsedJobs(schema: string, app: string, jobs: string): string {
  return `WITH old AS (DELETE FROM ${schema}.usage WHERE app = ${app} AND day < ${daySql} - 1)
    INSERT INTO ${schema}.usage AS u (app, day, jobs, audio_seconds, bytes) VALUES (${app}, ${daySql}, ${jobs}, 0, 0)
    ON CONFLICT (app, day) DO UPDATE SET jobs = u.jobs + excluded.jobs`
}

/** Today's usage of the application, and the time. */
export async function usedToday(run: Send, schema: string, app: string): Promise<{ used: Usage; now: number }> {
  const [row] = await run(readUsage(schema, '$1'), [columnText(app)])
  return parseUsage(row)
}

export async function countAdded(run: Send, schema: string, app: string, jobs: number): Promise<void> {
  await run(addUsedJobs(schema, '$1', '$2'), [columnText(app), jobs])
}

/** Parses a row of `readUsage`. */
export function parseUsage(row: Row = []): { used: Usage; now: number } {
  const [now = 0, jobs = 0, audioSeconds = 0, bytes = 0] = row.map(Number)
  return { now, used: { jobs, audioSeconds, bytes } }
}
