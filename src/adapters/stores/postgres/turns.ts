import { type PostgresClient, type PostgresPool, query, transaction } from './database.js'
import { lockSchema } from './advisory-locks.js'
import { distinctRows } from './distinct-rows.js'

/**
 * Applications take turns: each has a row in `turns` for every list (workflow and pool) in which it has waiting jobs.
 * All of its rows say when it was served last, so the next of each list is found by an index. A row without a list
 * stands for all of them: an older node has added it. A row of the list '' only keeps the place of an application whose
 * jobs run.
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
  return distinctRows(`${schema}.jobs WHERE waiting_since IS NOT NULL`, ['workflow', 'pool'], 'waiting_since')
}

/** The lists of one application, without the time. */
export function waitingListsOf(schema: string, app: string): string {
  return distinctRows(`${schema}.jobs WHERE app = ${app} AND waiting_since IS NOT NULL`, ['workflow', 'pool'])
}

function listsOfTurns(schema: string): string {
  return distinctRows(`${schema}.turns WHERE workflow IS NOT NULL`, ['workflow', 'pool'])
}

/**
 * Serializes claims under limits: each counts the jobs that the claims before it have begun. Held until the transaction
 * ends.
 */
export async function lockClaims(client: PostgresClient, schema: string): Promise<void> {
  await lockSchema(client, schema, 'claims')
}

/** Whether a job waits in the list of this row of `turns`, and whether one of its application runs: true or null. */
// Subqueries that give a value for each row: the planner would rather read all waiting jobs.
const waits = (schema: string, turn: string) => {
  const job = (more = '') =>
    `(SELECT true FROM ${schema}.jobs WHERE app = ${turn}.app AND waiting_since IS NOT NULL${more} LIMIT 1)`
  return `CASE WHEN ${turn}.workflow IS NULL THEN ${job()}
    ELSE ${job(` AND workflow = ${turn}.workflow AND pool = ${turn}.pool`)} END`
}
const runs = (schema: string, turn: string) =>
  `(SELECT true FROM ${schema}.jobs WHERE app = ${turn}.app AND status = 'STARTED' AND NOT deleted LIMIT 1)`

/** Rows of each list that a claim looks at. */
const leftAtOnce = 100

/**
 * Statements of the claim function: removes rows without waiting jobs, which it has passed, from the lists
 * `list_workflows` and `list_pools` as far as they were served before `first_served`, so that the next claims need not
 * pass them. The last row of an application that has a running job becomes one of the list '', which no claim looks at:
 * it keeps the application's place.
 */
export function leaveTurns(schema: string): string {
  return `
    SELECT array_agg(app), array_agg(id) INTO idle_apps, idle_ids FROM (
      SELECT app, id FROM ${schema}.turns WHERE (app, id) IN (
        SELECT app, id FROM unnest(list_workflows, list_pools) AS list(workflow, pool) CROSS JOIN LATERAL (
          SELECT t.* FROM ${schema}.turns AS t WHERE t.workflow = list.workflow AND t.pool = list.pool
            AND t.served < first_served ORDER BY served, id LIMIT ${leftAtOnce}
        ) AS first WHERE ${waits(schema, 'first')} IS NULL
      ) FOR UPDATE SKIP LOCKED
    ) AS idle;
    IF idle_ids IS NOT NULL THEN
      WITH gone AS (
        DELETE FROM ${schema}.turns AS t USING unnest(idle_apps, idle_ids) AS idle(app, id)
        WHERE t.app = idle.app AND t.id = idle.id AND ${waits(schema, 't')} IS NULL RETURNING t.app, t.served
      )
      INSERT INTO ${schema}.turns (app, workflow, pool, served)
      SELECT app, '', '', max(served) FROM gone WHERE ${runs(schema, 'gone')}
        AND NOT EXISTS (SELECT FROM ${schema}.turns AS t WHERE t.app = gone.app AND t.id <> ALL(idle_ids))
      GROUP BY app;
    END IF;`
}

/** Rows of each list that one round of tidying looks at. */
const tidiedAtOnce = 100

/**
 * Removes rows of applications without waiting and running jobs, longest unserved first, and adds rows for the jobs
 * that have waited longest, where an older node has added none.
 */
export async function tidyTurns(pool: PostgresPool, schema: string): Promise<void> {
  const first = (condition: string) =>
    `(SELECT app, id, workflow, pool FROM ${schema}.turns WHERE ${condition} ORDER BY served, id LIMIT $1)`
  const isIdle = (turn: string) => `${waits(schema, turn)} IS NULL AND ${runs(schema, turn)} IS NULL`
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
