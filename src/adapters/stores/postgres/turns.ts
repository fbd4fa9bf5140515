import { everyApplication } from '../../../core/engine/job/scheduling.js'
import { type PostgresClient, type PostgresPool, query, transaction } from './database.js'
import { earliestLapsed, lapsedBy } from './job-lists.js'
import { nowSql, quickCommitSql } from './job-row.js'
import type { PlannedStatement } from './planned-statements.js'

/**
 * Applications take turns: each has a row in `turns` for every list (workflow and pool) in which it has waiting jobs.
 * All of its rows say when it was served last, so the next of each list is found by an index. A row without a list
 * stands for all of them: an older node has added it.
 *
 * A transaction that makes a job wait (a create, a retry) holds the rows of its application and list with KEY SHARE
 * until the commit, or adds one. This blocks neither other creates nor claims. A row is removed only under FOR UPDATE,
 * which fails while another transaction holds it, and only after a new statement has seen no waiting job, so no waiting
 * job is ever without a row. Two simultaneous first creates may add two rows; together they count as one.
 */

/**
 * Common table expressions for a statement that makes jobs of one application wait.
 *
 * @param app its parameter
 * @param lists a query for the columns `workflow` and `pool` of these jobs
 */
export function joinTurns(schema: string, app: string, lists: string): string {
  return `
    entered AS MATERIALIZED (${lists}),
    held AS MATERIALIZED (
      SELECT workflow, pool FROM ${schema}.turns AS t
      WHERE app = ${app} AND (workflow IS NULL OR EXISTS (SELECT FROM entered AS e WHERE e.workflow = t.workflow
        AND e.pool = t.pool)) FOR KEY SHARE
    ),
    joined AS (
      INSERT INTO ${schema}.turns (app, workflow, pool, served)
      SELECT ${app}, workflow, pool, coalesce((SELECT max(served) FROM ${schema}.turns WHERE app = ${app}), 0)
      FROM entered AS e
      WHERE NOT EXISTS (SELECT FROM held WHERE held.workflow IS NULL OR (held.workflow = e.workflow
        AND held.pool = e.pool))
    )`
}

/**
 * The lists in which jobs wait, one for each workflow and pool, and since when the first does: a query with the columns
 * `workflow`, `pool` and `waiting_since`, which goes from list to list without reading the jobs in between.
 */
export function waitingLists(schema: string): string {
  return distinctLists(`${schema}.jobs WHERE waiting_since IS NOT NULL`, 'waiting_since')
}

/** Those of one application, without the time. */
export function waitingListsOf(schema: string, app: string): string {
  return distinctLists(`${schema}.jobs WHERE app = ${app} AND waiting_since IS NOT NULL`)
}

function listsOfTurns(schema: string): string {
  return distinctLists(`${schema}.turns WHERE workflow IS NOT NULL`)
}

/** @param smallest a column of which the smallest value of each list is wanted, too */
function distinctLists(source: string, smallest?: string): string {
  const columns = ['workflow', 'pool', ...(smallest ? [smallest] : [])]
  const of = (table: string) => columns.map((column) => `${table}.${column}`).join(', ')
  const next = (behind: string) =>
    `SELECT ${columns.join(', ')} FROM ${source} ${behind} ORDER BY ${columns.join(', ')} LIMIT 1`
  return `
    WITH RECURSIVE list AS (
      (${next('')})
      UNION ALL
      SELECT ${of('other')} FROM list CROSS JOIN LATERAL (
        ${next('AND (workflow, pool) > (list.workflow, list.pool)')}
      ) AS other
    ) SELECT ${of('list')} FROM list`
}

/** Most jobs of one claim: the step of the sequence `turn`, which numbers the applications that it serves. */
export const mostAtOnce = 1000

/**
 * Claims the next jobs by the rule of `JobStore.claim`. Parameters: $1 the owner, $2 the lease in milliseconds, $3 the
 * nonce, $4 applications and $5 jobs to leave out, $6 workflows and $8 labels of the worker (null: any), $7 whether the
 * sender holds the lock (`lockClaims`), $9 when a lease must have ended to be taken over (null: now), $10 how many jobs
 * of an application do not run (`belowRunning`; null: any), $11 how many jobs at most, $12 how many applications
 * and jobs more than that are looked at, as other claims may be taking them at the same time, and $13 applications
 * whose jobs alone are wanted (null: any).
 *
 * Simultaneous claims skip each other's jobs. Jobs that are paused, or for other workers, are never read, nor are
 * applications that have none for the worker.
 *
 * Rows of `version, record, claims, id` of the jobs, or one with nulls, each with whether there are limits of running
 * jobs, whether any job was due for the worker, and whether more may be found by looking at more. Where there are
 * limits, only a claim with $7 takes a queued job, so that nobody else counts running jobs meanwhile, and no more than
 * one.
 *
 * The commit does not wait for the disk: a claim that a failing server loses is one whose worker is superseded by its
 * nonce, as after a lapse.
 */
// oxlint-disable-next-line max-lines-per-function -- one SQL statement
export function claimNextStatement(schema: string): string {
  // Not the parameters themselves: without the function (`PlannedStatement`), Postgres would plan for those each time.
  const asked = (what: 'apps' | 'only_apps' | 'ids' | 'workflows' | 'labels') => `(SELECT ${what} FROM asked)::text[]`
  const running = (condition: string, most: string) =>
    `(SELECT count(*) FROM (SELECT FROM ${schema}.jobs AS running WHERE ${condition} LIMIT ${most}) AS counted)`
  const ofApp = (app: string) => `running.app = ${app} AND running.status = 'STARTED' AND NOT running.deleted`
  const below = '(SELECT below FROM asked)'
  /** Whether fewer jobs of the application run than are asked for. */
  const isBelow = (condition: string) => `(${below} IS NULL OR ${running(condition, below)} < ${below})`
  /** Whether the worker has all labels that the job needs; null: any job will do. */
  const isServed = (pool: string) =>
    `(${pool} = '' OR ${asked('labels')} IS NULL OR string_to_array(${pool}, ' ') <@ ${asked('labels')})`
  const isAmongApps = `(${asked('only_apps')} IS NULL OR app = ANY(${asked('only_apps')}))`
  /** The first applications in turn of a list. */
  const firstApps = (condition: string) => `
    SELECT app, served, id FROM ${schema}.turns AS t
    WHERE ${condition} AND EXISTS (SELECT FROM proceed) AND app <> ALL(${asked('apps')}) AND ${isAmongApps}
      AND NOT EXISTS (SELECT FROM closed AS c WHERE c.kind = 'application' AND c.id = t.app)
      AND ${isBelow(ofApp('t.app'))}
    ORDER BY served, id LIMIT (SELECT most + look FROM asked)`
  return `
    WITH clock AS MATERIALIZED (
      SELECT now, least(now, $9::bigint) AS lapsed, ${quickCommitSql} AS commit FROM ${nowSql} AS clock(now)
    ),
    asked AS MATERIALIZED (SELECT $4::text[] AS apps, $5::text[] AS ids, $6::text[] AS workflows,
      $7::boolean AS is_locked, $8::text[] AS labels, $10::int AS below, $11::int AS most, $12::int AS look,
      $13::text[] AS only_apps),
    limited AS MATERIALIZED (SELECT EXISTS (SELECT FROM ${schema}.rules WHERE max_running IS NOT NULL) AS is_so),
    begun AS MATERIALIZED (
      SELECT app, workflow, count(*) AS jobs FROM ${schema}.jobs WHERE lease_bucket IS NOT NULL
        AND (SELECT is_so FROM limited) GROUP BY app, workflow
    ),
    -- Naming the kinds makes the planner expect few rules: of a table so small it knows nothing,
    -- and would plan each claim anew.
    closed AS MATERIALIZED (
      SELECT kind, id, state = 'paused' AS is_paused FROM ${schema}.rules AS rule
        WHERE kind IN ('application', 'workflow', 'deployment') AND (state = 'paused' OR max_running <= (
          SELECT coalesce(sum(jobs), 0) FROM begun
          WHERE CASE kind WHEN 'application' THEN app = rule.id WHEN 'workflow' THEN workflow = rule.id ELSE true END
        ))
      UNION ALL
      SELECT 'application', app, false FROM begun GROUP BY app HAVING sum(jobs) >= (
        SELECT max_running FROM ${schema}.rules WHERE kind = 'application' AND id = '${everyApplication}'
      ) AND NOT EXISTS (SELECT FROM ${schema}.rules AS own
        WHERE own.kind = 'application' AND own.id = begun.app AND own.max_running IS NOT NULL)
    ),
    -- One, not as many as are asked for: of a limit that it does not know the planner expects so much that it would
    -- compile the statement each time, for a tenth of a second.
    lapsed AS MATERIALIZED (
      SELECT id FROM ${schema}.jobs AS job WHERE app <> ALL(${asked('apps')}) AND ${isAmongApps}
        AND id <> ALL(${asked('ids')})
        AND (${asked('workflows')} IS NULL OR workflow = ANY(${asked('workflows')})) AND ${isServed('pool')}
        AND NOT EXISTS (SELECT FROM closed AS c WHERE is_paused AND CASE kind
          WHEN 'application' THEN c.id = job.app WHEN 'workflow' THEN c.id = job.workflow ELSE true END)
        AND ${isBelow(`${ofApp('job.app')} AND running.id <> job.id`)}
        AND ${lapsedBy('(SELECT lapsed FROM clock)')}
        ${earliestLapsed} LIMIT 1 FOR UPDATE OF job SKIP LOCKED
    ),
    -- Lists with a job for the worker now. Without any, no application is looked at.
    lists AS MATERIALIZED (
      SELECT workflow, pool FROM (${waitingLists(schema)}) AS list
      WHERE waiting_since <= (SELECT now FROM clock) AND ${isServed('pool')}
        AND (${asked('workflows')} IS NULL OR workflow = ANY(${asked('workflows')}))
        AND NOT EXISTS (SELECT FROM closed AS c WHERE c.kind = 'workflow' AND c.id = workflow)
    ),
    proceed AS MATERIALIZED (
      SELECT FROM limited WHERE ((SELECT is_locked FROM asked) OR NOT is_so) AND NOT EXISTS (SELECT FROM lapsed)
        AND NOT EXISTS (SELECT FROM closed WHERE kind = 'deployment')
        AND EXISTS (SELECT FROM lists)
    ),
    turn_rows AS MATERIALIZED (
      SELECT first.* FROM lists CROSS JOIN LATERAL (
        ${firstApps('workflow = lists.workflow AND pool = lists.pool')}
      ) AS first
      UNION ALL (${firstApps('workflow IS NULL')})
    ),
    turn AS MATERIALIZED (
      SELECT app, max(served) AS served, min(id) AS id FROM turn_rows GROUP BY app
      ORDER BY 2, 3 LIMIT (SELECT most + look FROM asked)
    ),
    depth AS MATERIALIZED (
      SELECT 1 + (SELECT most + 3 * look FROM asked) / greatest(count(*), 1) AS jobs FROM turn
    ),
    head AS MATERIALIZED (
      SELECT turn.app, turn.served, turn.id AS turn, job.id,
        row_number() OVER (PARTITION BY turn.app ORDER BY job.rank, job.waiting_since, job.id) AS nth
      FROM turn CROSS JOIN lists CROSS JOIN LATERAL (
        SELECT id, rank, waiting_since FROM ${schema}.jobs
        WHERE app = turn.app AND workflow = lists.workflow AND pool = lists.pool
          AND waiting_since <= (SELECT now FROM clock)
          AND id <> ALL(${asked('ids')})
        ORDER BY rank, waiting_since, id LIMIT (SELECT jobs FROM depth)
      ) AS job
    ),
    taken AS MATERIALIZED (
      SELECT head.* FROM (SELECT * FROM head ORDER BY nth, served, turn) AS head
      CROSS JOIN LATERAL (
        SELECT id FROM ${schema}.jobs WHERE id = head.id AND waiting_since IS NOT NULL FOR UPDATE SKIP LOCKED
      ) AS locked
      LIMIT (SELECT CASE WHEN is_so THEN 1 ELSE most END FROM asked, limited)
    ),
    -- Arrays: Postgres searches an index for each element, however many rows it expects.
    picked AS MATERIALIZED (
      SELECT ARRAY(SELECT id FROM lapsed) || ARRAY(SELECT id FROM taken ORDER BY nth, served, turn) AS ids,
        ARRAY(SELECT app FROM taken GROUP BY app ORDER BY max(nth), max(served), max(turn)) AS apps
    ),
    number AS MATERIALIZED (SELECT nextval('${schema}.turn') AS base WHERE EXISTS (SELECT FROM taken)),
    served AS (
      UPDATE ${schema}.turns SET served = number.base + array_position((SELECT apps FROM picked), app)
      FROM number
      WHERE app = ANY((SELECT apps FROM picked)::text[]) AND id = ANY(ARRAY(
        SELECT id FROM ${schema}.turns WHERE app = ANY((SELECT apps FROM picked)::text[]) FOR NO KEY UPDATE SKIP LOCKED
      ))
    ),
    claimed AS (
      UPDATE ${schema}.jobs SET version = version + 1, status = 'STARTED', waiting_since = NULL,
        lease_until = clock.now + $2::bigint, nonce = $3,
        claims = coalesce(claims, '[]') || jsonb_build_object('owner', $1::text, 'leaseMs', $2::bigint, 
          'nonce', $3::text, 'at', clock.now)
      FROM clock
      WHERE id = ANY((SELECT ids FROM picked)::text[])
      RETURNING version, record, claims, id
    )
    SELECT claimed.version, claimed.record, claimed.claims, claimed.id, limited.is_so, EXISTS (SELECT FROM lists),
      (SELECT count(*) FROM turn_rows) >= asked.most + asked.look
        OR (SELECT count(*) FROM head) >= (SELECT jobs FROM depth)
        OR (claimed.id IS NOT NULL AND (is_so OR EXISTS (SELECT FROM lapsed)))
    FROM limited CROSS JOIN asked LEFT JOIN claimed ON true
    ORDER BY array_position((SELECT ids FROM picked), claimed.id)`
}

/** What `claimNextStatement` takes and returns. */
export function claimNext(schema: string): PlannedStatement {
  return {
    name: 'claim_next',
    text: claimNextStatement(schema),
    parameters: [
      'text',
      'bigint',
      'text',
      'text[]',
      'text[]',
      'text[]',
      'boolean',
      'text[]',
      'bigint',
      'integer',
      'integer',
      'integer',
      'text[]',
    ],
    columns: ['integer', 'json', 'jsonb', 'text', 'boolean', 'boolean', 'boolean'],
  }
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

/** Rows of each list that one round of tidying looks at: those that every claim passes first. */
const tidiedAtOnce = 100

/**
 * Removes rows of applications without waiting and running jobs, as far as claims would pass them first, and adds those
 * of the jobs that have waited longest, where an older node has added none.
 */
export async function tidyTurns(pool: PostgresPool, schema: string): Promise<void> {
  const isIdle = (turn: string) =>
    `NOT EXISTS (SELECT FROM ${schema}.jobs WHERE app = ${turn}.app AND waiting_since IS NOT NULL
      AND (${turn}.workflow IS NULL OR (workflow = ${turn}.workflow AND pool = ${turn}.pool)))
      AND NOT EXISTS (SELECT FROM ${schema}.jobs WHERE app = ${turn}.app AND status = 'STARTED' AND NOT deleted)`
  const first = (condition: string) =>
    `(SELECT app, id, workflow, pool FROM ${schema}.turns WHERE ${condition} ORDER BY served, id LIMIT $1)`
  await transaction(pool, async (client) => {
    const rows = await query(
      client,
      `SELECT app, id FROM ${schema}.turns WHERE (app, id) IN (
        SELECT app, id FROM (
          SELECT first.* FROM (${listsOfTurns(schema)}) AS list
          CROSS JOIN LATERAL ${first('workflow = list.workflow AND pool = list.pool')} AS first
          UNION ALL ${first('workflow IS NULL')}
        ) AS first WHERE ${isIdle('first')}
      ) FOR UPDATE SKIP LOCKED`,
      [tidiedAtOnce],
    )
    if (rows.length > 0)
      await query(
        client,
        `DELETE FROM ${schema}.turns AS t USING unnest($1::text[], $2::bigint[]) AS idle(app, id)
        WHERE t.app = idle.app AND t.id = idle.id AND ${isIdle('t')}`,
        [rows.map(([app]) => app), rows.map(([, id]) => id)],
      )
    await query(
      client,
      `INSERT INTO ${schema}.turns (app, workflow, pool)
      SELECT DISTINCT app, list.workflow, list.pool FROM (${waitingLists(schema)}) AS list CROSS JOIN LATERAL (
        SELECT app FROM ${schema}.jobs WHERE workflow = list.workflow AND pool = list.pool
          AND waiting_since IS NOT NULL
        ORDER BY waiting_since LIMIT $1
      ) AS first
      WHERE NOT EXISTS (SELECT FROM ${schema}.turns AS t WHERE t.app = first.app AND (t.workflow IS NULL
        OR (t.workflow = list.workflow AND t.pool = list.pool)))`,
      [tidiedAtOnce],
    )
  })
}
