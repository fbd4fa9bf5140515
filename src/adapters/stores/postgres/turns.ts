import { type PostgresClient, type PostgresPool, query, transaction } from './database.js'
import { earliestLapsed, lapsedSql } from './job-lists.js'
import { nowSql } from './job-row.js'

/**
 * Applications take turns: each that has waiting jobs has a row in `turns`, and of those the one served longest ago is
 * next.
 *
 * A transaction that makes a job wait (a create, a retry) holds the rows of its application with KEY SHARE until the
 * commit, or adds one. This blocks neither other creates nor claims. A row is removed only under FOR UPDATE, which
 * fails while another transaction holds it, and only after a new statement has seen no waiting job, so no waiting job
 * is ever without a row. Two simultaneous first creates may add two rows; the older one counts.
 */

/** Common table expressions for a statement that makes a job of the application in the given parameter wait. */
export function joinTurns(schema: string, app: string): string {
  return `
    held AS MATERIALIZED (SELECT 1 FROM ${schema}.turns WHERE app = ${app} FOR KEY SHARE),
    joined AS (INSERT INTO ${schema}.turns (app) SELECT ${app} WHERE (SELECT count(*) FROM held) = 0)`
}

/**
 * The lists in which jobs wait, one for each workflow and pool, of an application or of all: a query with the columns
 * `workflow` and `pool`, which goes from list to list without reading the jobs in between.
 */
export function waitingLists(schema: string, app?: string): string {
  const next = (behind: string) => `
    SELECT workflow, pool FROM ${schema}.jobs WHERE ${app ? `app = ${app} AND ` : ''}waiting_since IS NOT NULL ${behind}
      ORDER BY workflow, pool LIMIT 1`
  return `
    WITH RECURSIVE list (workflow, pool) AS (
      (${next('')})
      UNION ALL
      SELECT other.workflow, other.pool FROM list CROSS JOIN LATERAL (
        ${next('AND (workflow, pool) > (list.workflow, list.pool)')}
      ) AS other
    ) SELECT workflow, pool FROM list`
}

/** How many jobs of each list are looked at: the first may be taken by claims at the same time. */
const firstLook = 4
const secondLook = 100

/**
 * Claims the next job by the rule of `JobStore.claim`. Parameters: $1 the owner, $2 the lease in milliseconds, $3 the
 * nonce, $4 applications and $5 jobs to leave out, $6 workflows and $8 labels of the worker (null: any), $7 whether the
 * sender holds the lock (`lockClaims`), $9 when a lease must have ended to be taken over (null: now), $10 how many jobs
 * of an application do not run (`belowRunning`; null: any).
 *
 * Simultaneous claims skip each other's applications. A claim that finds no other application takes the first job in
 * turn that no other claim is taking, so that none returns empty-handed while jobs wait. Jobs that are paused, or for
 * other workers, are never read.
 *
 * One row: `version, record, claims, id` of the job, or nulls, and whether there are limits of running jobs. Where
 * there are, only a claim with $7 takes a queued job, so that nobody else counts running jobs meanwhile.
 */
// oxlint-disable-next-line max-lines-per-function -- one SQL statement
export function claimNextStatement(schema: string): string {
  // Not the parameters themselves: for those Postgres would plan each time, which takes longer than the work.
  const asked = (what: 'apps' | 'ids' | 'workflows' | 'labels') => `(SELECT ${what} FROM asked)::text[]`
  const running = (condition: string, most = 'rule.max_running') =>
    `(SELECT count(*) FROM (SELECT FROM ${schema}.jobs AS running WHERE ${condition} LIMIT ${most}) AS counted)`
  const ofApp = (app: string) => `running.app = ${app} AND running.status = 'STARTED' AND NOT running.deleted`
  const below = '(SELECT below FROM asked)'
  /** Whether fewer jobs of the application run than are asked for. */
  const isBelow = (condition: string) => `(${below} IS NULL OR ${running(condition, below)} < ${below})`
  /** Whether the worker has all labels that the job needs; null: any job will do. */
  const isServed = (pool: string) =>
    `(${pool} = '' OR ${asked('labels')} IS NULL OR string_to_array(${pool}, ' ') <@ ${asked('labels')})`
  /**
   * Whether the application may have a turn. One that has nothing for the worker is skipped before its row is locked:
   * the lock costs most.
   */
  const isAppOpen = (app: string) => `
    ${app} <> ALL(${asked('apps')}) AND NOT EXISTS (SELECT FROM closed AS c WHERE c.kind = 'application'
      AND c.id = ${app})
    AND ${isBelow(ofApp(app))}
    AND (
      SELECT true FROM lists CROSS JOIN LATERAL (
        SELECT FROM ${schema}.jobs WHERE app = ${app} AND workflow = lists.workflow AND pool = lists.pool
          AND waiting_since IS NOT NULL
        ORDER BY rank LIMIT 1
      ) AS any_job LIMIT 1
    )`
  const first = (app: string, look: number) => `
    SELECT locked.id FROM (
      SELECT head.id FROM lists CROSS JOIN LATERAL (
        SELECT id, rank, waiting_since FROM ${schema}.jobs
        WHERE app = ${app} AND workflow = lists.workflow AND pool = lists.pool AND waiting_since <= ${nowSql}
          AND id <> ALL(${asked('ids')})
        ORDER BY rank, waiting_since, id LIMIT ${look}
      ) AS head
      ORDER BY head.rank, head.waiting_since, head.id
    ) AS head
    CROSS JOIN LATERAL (
      SELECT id FROM ${schema}.jobs WHERE id = head.id AND waiting_since IS NOT NULL FOR UPDATE SKIP LOCKED
    ) AS locked LIMIT 1`
  return `
    WITH clock AS MATERIALIZED (SELECT ${nowSql} AS now),
    asked AS MATERIALIZED (SELECT $4::text[] AS apps, $5::text[] AS ids, $6::text[] AS workflows,
      $7::boolean AS is_locked, $8::text[] AS labels, $9::bigint AS lapsed_before, $10::int AS below),
    limited AS MATERIALIZED (SELECT EXISTS (SELECT FROM ${schema}.rules WHERE max_running IS NOT NULL) AS is_so),
    -- Naming the kinds makes the planner expect few rules: of a table so small it knows nothing,
    -- and would plan each claim anew.
    closed AS MATERIALIZED (
      SELECT kind, id, state = 'paused' AS is_paused FROM ${schema}.rules AS rule
        WHERE kind IN ('application', 'workflow', 'deployment') AND (state = 'paused' OR max_running <= CASE kind
        WHEN 'application' THEN ${running(ofApp('rule.id'))}
        WHEN 'workflow' THEN ${running('running.workflow = rule.id AND lease_bucket IS NOT NULL')}
        ELSE ${running('lease_bucket IS NOT NULL')} END)
    ),
    lapsed AS MATERIALIZED (
      SELECT id FROM ${schema}.jobs AS job WHERE app <> ALL(${asked('apps')}) AND id <> ALL(${asked('ids')})
        AND (${asked('workflows')} IS NULL OR workflow = ANY(${asked('workflows')})) AND ${isServed('pool')}
        AND NOT EXISTS (SELECT FROM closed AS c WHERE is_paused AND CASE kind
          WHEN 'application' THEN c.id = job.app WHEN 'workflow' THEN c.id = job.workflow ELSE true END)
        AND ${isBelow(`${ofApp('job.app')} AND running.id <> job.id`)}
        AND ${lapsedSql} AND coalesce(lease_until, 0) <= coalesce((SELECT lapsed_before FROM asked), ${nowSql})
        ${earliestLapsed} LIMIT 1 FOR UPDATE OF job SKIP LOCKED
    ),
    -- Lists with a job for the worker now. Without any, no application is looked at.
    lists AS MATERIALIZED (
      SELECT workflow, pool FROM (${waitingLists(schema)}) AS list
      WHERE (${asked('workflows')} IS NULL OR workflow = ANY(${asked('workflows')})) AND ${isServed('pool')}
        AND NOT EXISTS (SELECT FROM closed AS c WHERE c.kind = 'workflow' AND c.id = workflow)
        AND (SELECT min(waiting_since) FROM ${schema}.jobs WHERE workflow = list.workflow AND pool = list.pool
          AND waiting_since IS NOT NULL) <= ${nowSql}
    ),
    proceed AS MATERIALIZED (
      SELECT FROM limited WHERE ((SELECT is_locked FROM asked) OR NOT is_so) AND NOT EXISTS (SELECT FROM lapsed)
        AND NOT EXISTS (SELECT FROM closed WHERE kind = 'deployment')
        AND EXISTS (SELECT FROM lists)
    ),
    next AS MATERIALIZED (
      SELECT turn.id AS turn, turn.app, job.id FROM (
        SELECT id, app FROM ${schema}.turns AS t
        WHERE EXISTS (SELECT FROM proceed) AND ${isAppOpen('t.app')} AND id = (SELECT min(id) FROM ${schema}.turns
          WHERE app = t.app)
        ORDER BY served, id FOR NO KEY UPDATE OF t SKIP LOCKED
      ) AS turn
      CROSS JOIN LATERAL (${first('turn.app', firstLook)}) AS job
      LIMIT 1
    ),
    other AS MATERIALIZED (
      SELECT job.id FROM (
        SELECT app FROM ${schema}.turns AS t
        WHERE EXISTS (SELECT FROM proceed) AND NOT EXISTS (SELECT FROM next) AND ${isAppOpen('t.app')}
          ORDER BY served, id
      ) AS turn
      CROSS JOIN LATERAL (${first('turn.app', secondLook)}) AS job
      LIMIT 1
    ),
    served AS (
      UPDATE ${schema}.turns SET served = nextval('${schema}.turn') WHERE app = (SELECT app FROM next)
        AND id = (SELECT turn FROM next)
    ),
    claimed AS (
      UPDATE ${schema}.jobs SET version = version + 1, status = 'STARTED', waiting_since = NULL,
        lease_until = clock.now + $2::bigint, nonce = $3,
        claims = coalesce(claims, '[]') || jsonb_build_object('owner', $1::text, 'leaseMs', $2::bigint, 
          'nonce', $3::text, 'at', clock.now)
      FROM clock
      WHERE id = (SELECT id FROM lapsed UNION ALL SELECT id FROM next UNION ALL SELECT id FROM other)
      RETURNING version, record, claims, id
    )
    SELECT claimed.version, claimed.record, claimed.claims, claimed.id, limited.is_so FROM limited
      LEFT JOIN claimed ON true`
}

/**
 * Any number that no other user of the database's advisory locks takes; with the schema's hash it is one lock per
 * schema.
 */
const lockClass = 0x57e5

/**
 * Makes claims under limits follow one another: each counts what those before it have begun. Held until the transaction
 * ends.
 */
export async function lockClaims(client: PostgresClient, schema: string): Promise<void> {
  await query(client, 'SELECT pg_advisory_xact_lock($1::int, hashtext($2))', [lockClass, schema])
}

/** Rows that one round of tidying looks at: those that every claim passes first. */
const tidiedAtOnce = 100

/** Removes rows of applications without waiting and running jobs, as far as claims would pass them first. */
export async function tidyTurns(pool: PostgresPool, schema: string): Promise<void> {
  const isIdle = (turn: string) =>
    `NOT EXISTS (SELECT FROM ${schema}.jobs WHERE app = ${turn}.app AND waiting_since IS NOT NULL)
      AND NOT EXISTS (SELECT FROM ${schema}.jobs WHERE app = ${turn}.app AND status = 'STARTED' AND NOT deleted)`
  await transaction(pool, async (client) => {
    const rows = await query(
      client,
      `SELECT app, id FROM ${schema}.turns WHERE (app, id) IN (
        SELECT app, id FROM (SELECT app, id FROM ${schema}.turns ORDER BY served, id LIMIT $1) AS first
          WHERE ${isIdle('first')}
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
