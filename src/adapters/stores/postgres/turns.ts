import { type PostgresPool, query, transaction } from './database.js'
import { lapsedSql } from './job-lists.js'
import { nowSql } from './job-row.js'

/**
 * Applications take turns: each that has waiting jobs has a row in `turns`, and of those the one served longest ago is next.
 *
 * Whoever makes a job wait (a create, a retry) holds the rows of its application with KEY SHARE until the commit, or adds one.
 * That makes nobody wait, neither other creates nor claims. A row is removed only by one who got it with FOR UPDATE, which is
 * refused as long as somebody holds it, and who then, in a new statement, sees no waiting job: so no waiting job is ever without
 * a row. Two first creates at once may add two rows; the older one counts.
 */

/** Common table expressions for a statement that makes a job of the application in the given parameter wait. */
export function joinTurns(schema: string, app: string): string {
  return `
    held AS MATERIALIZED (SELECT 1 FROM ${schema}.turns WHERE app = ${app} FOR KEY SHARE),
    joined AS (INSERT INTO ${schema}.turns (app) SELECT ${app} WHERE (SELECT count(*) FROM held) = 0)`
}

/**
 * Claims the next job by the rule of `JobStore.claim`, for the owner $1 with a lease of $2 milliseconds and the nonce $3, but
 * none of the applications in $4 and not the jobs in $5. Claims at the same time skip each other's applications; who finds none left takes
 * the longest waiting job that nobody else is taking, so none comes back with nothing while there are jobs.
 */
export function claimNextStatement(schema: string): string {
  const waiting = `SELECT id FROM ${schema}.jobs WHERE waiting_since <= ${nowSql} AND app <> ALL($4::text[]) AND id <> ALL($5::text[])`
  const longest = 'ORDER BY waiting_since, id LIMIT 1 FOR UPDATE SKIP LOCKED'
  return `
    WITH clock AS MATERIALIZED (SELECT ${nowSql} AS now),
    lapsed AS MATERIALIZED (SELECT id FROM ${schema}.jobs WHERE app <> ALL($4::text[]) AND id <> ALL($5::text[]) AND ${lapsedSql} LIMIT 1 FOR UPDATE SKIP LOCKED),
    next AS MATERIALIZED (
      SELECT turn.id AS turn, turn.app, job.id FROM (
        SELECT id, app FROM ${schema}.turns AS t
        WHERE NOT EXISTS (SELECT FROM lapsed) AND app <> ALL($4::text[]) AND id = (SELECT min(id) FROM ${schema}.turns WHERE app = t.app)
        ORDER BY served, id FOR NO KEY UPDATE SKIP LOCKED
      ) AS turn
      CROSS JOIN LATERAL (${waiting} AND app = turn.app ${longest}) AS job
      LIMIT 1
    ),
    other AS MATERIALIZED (${waiting} AND NOT EXISTS (SELECT FROM lapsed) AND NOT EXISTS (SELECT FROM next) ${longest}),
    served AS (
      UPDATE ${schema}.turns SET served = nextval('${schema}.turn') WHERE app = (SELECT app FROM next) AND id = (SELECT turn FROM next)
    )
    UPDATE ${schema}.jobs SET version = version + 1, status = 'STARTED', waiting_since = NULL, lease_until = clock.now + $2::bigint, nonce = $3,
      claims = coalesce(claims, '[]') || jsonb_build_object('owner', $1::text, 'leaseMs', $2::bigint, 'nonce', $3::text, 'at', clock.now)
    FROM clock
    WHERE id = (SELECT id FROM lapsed UNION ALL SELECT id FROM next UNION ALL SELECT id FROM other)
    RETURNING version, record, claims, id`
}

/** Rows that one round of tidying looks at: those that every claim passes first. */
const tidiedAtOnce = 100

/** Removes rows of applications that wait for nothing, as far as claims would pass them first. */
export async function tidyTurns(pool: PostgresPool, schema: string): Promise<void> {
  const isIdle = (turn: string) =>
    `NOT EXISTS (SELECT FROM ${schema}.jobs WHERE app = ${turn}.app AND waiting_since IS NOT NULL)`
  await transaction(pool, async (client) => {
    const rows = await query(
      client,
      `SELECT app, id FROM ${schema}.turns WHERE (app, id) IN (
        SELECT app, id FROM (SELECT app, id FROM ${schema}.turns ORDER BY served, id LIMIT $1) AS first WHERE ${isIdle('first')}
      ) FOR UPDATE SKIP LOCKED`,
      [tidiedAtOnce],
    )
    if (rows.length === 0) return
    await query(
      client,
      `DELETE FROM ${schema}.turns AS t USING unnest($1::text[], $2::bigint[]) AS idle(app, id)
      WHERE t.app = idle.app AND t.id = idle.id AND ${isIdle('t')}`,
      [rows.map(([app]) => app), rows.map(([, id]) => id)],
    )
  })
}
