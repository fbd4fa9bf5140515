import { everyApplication } from '../../../core/engine/job/scheduling.js'
import { earliestLapsed, lapsedBy } from './job-lists.js'
import { clockSql, quickCommitSql } from './job-row.js'
import type { PlannedFunction } from './planned-functions.js'
import { leaveTurns, waitingLists } from './turns.js'

/** Most jobs of one claim: the step of the sequence `turn`, which numbers the applications that it serves. */
export const mostAtOnce = 1000

const parameters =
  'text, bigint, text, text[], text[], text[], boolean, text[], bigint, integer, integer, integer, text[], ' +
  'text[], smallint, bigint, text'

/** Variables of the search in `turns`. */
const listVariables = `
  list_workflows text[];
  list_pools text[];
  list_fronts bigint[];
  its_workflow text;
  its_pool text;
  front bigint;
  last_workflow text;
  last_pool text;
  -- The planner expects a tenth of the rows behind a limit that it does not know, and does not sort them all.
  no_limit bigint := NULL;
  first_served bigint;
  idle_apps text[];
  idle_ids bigint[];`

/**
 * Claims the next jobs by the rule of `JobStore.claim`. Parameters: $1 the owner, $2 the lease in milliseconds, $3 the
 * nonce, $4 applications and $5 jobs to leave out, $6 workflows and $8 labels of the worker (null: any), $7 whether the
 * sender holds the lock (`lockClaims`), $9 when a lease must have ended to be taken over (null: now), $10
 * `belowRunning` (null: any number), $11 how many jobs at most, $12 how many more applications and jobs to look at, as
 * other claims may be taking some, $13 applications whose jobs alone are wanted (null: any), and $14 to $17 where the
 * claim begins in a list (`Front`; null: at its start).
 *
 * Simultaneous claims skip each other's jobs. Jobs that are paused, or for other workers, are never read, nor are
 * applications that have none for the worker.
 *
 * Rows of `version, record, claims, id` of the jobs, or one with nulls, each with whether there are limits of running
 * jobs, whether any job was due for the worker, whether more may be found by looking at more, and its place. Where
 * there are limits, only a claim with $7 takes a queued job, so that nobody else counts running jobs meanwhile, and no
 * more than one.
 *
 * Several small statements, of which a claim needs few: setting up a large one costs more than its work.
 *
 * The commit does not wait for the disk: a claim that a failing server loses is one whose worker is superseded by its
 * nonce, as after a lapse.
 */
export function claimNext(schema: string): PlannedFunction {
  return {
    name: 'claim_next',
    parameters,
    columns: 'integer, json, jsonb, text, boolean, boolean, boolean, integer',
    body: `
    DECLARE
      clock bigint := ${clockSql};
      commits text := ${quickCommitSql};
      lapsed_by bigint := least(clock, $9);
      has_rules boolean;
      has_lapsed boolean;
      is_alone boolean;
      is_limited boolean := false;
      is_closed boolean := false;
      is_waiting boolean := false;
      may_be_more boolean := false;
      is_exact boolean;
      closed_apps text[] := ARRAY[]::text[];
      closed_workflows text[] := ARRAY[]::text[];
      ${listVariables}
      most integer := $11;
      wanted integer;
      apps text[];
      its_app text;
      round integer;
      next_apps text[];
      next_ids text[];
      chosen text[] := ARRAY[]::text[];
      served_apps text[] := ARRAY[]::text[];
      base bigint;
    BEGIN
      ${lookAround(schema)}
      IF has_rules THEN
        ${readRules(schema)}
      END IF;
      IF has_lapsed AND NOT is_closed THEN
        ${takeLapsed(schema)}
        may_be_more := chosen <> '{}';
      END IF;
      IF is_limited AND chosen = '{}' THEN
        ${closeFull(schema)}
      END IF;
      IF chosen = '{}' AND NOT is_closed THEN
        ${search(schema)}
      END IF;
      ${grant(schema)}
    END`,
  }
}

/** The first turn in the first list after the given one. */
const firstTurn = (schema: string, list: string) => `SELECT workflow, pool, served FROM ${schema}.turns
  WHERE (workflow, pool) > ${list} ORDER BY workflow, pool, served LIMIT 1`

/** Finds whether there are rules and lapsed jobs, and the first and the last list. */
function lookAround(schema: string): string {
  return `
    -- With an order, as the planner believes that a third of the table has lapsed.
    SELECT EXISTS (SELECT FROM ${schema}.rules WHERE state <> 'open' OR max_running IS NOT NULL),
      (SELECT true FROM ${schema}.jobs WHERE ${lapsedBy('lapsed_by')} ORDER BY lease_bucket LIMIT 1),
      first.*, last.*
    INTO has_rules, has_lapsed, its_workflow, its_pool, front, last_workflow, last_pool
    FROM (SELECT) AS one
    LEFT JOIN (${firstTurn(schema, "('', '')")}) AS first ON true
    LEFT JOIN (SELECT workflow, pool FROM ${schema}.turns ORDER BY workflow DESC, pool DESC LIMIT 1) AS last ON true;`
}

/** Looks in the lists of `turns` first, and where jobs wait only if that is not enough. */
function search(schema: string): string {
  return `
    -- A row without a list, which is the last, may be for any.
    is_exact := its_workflow IS NULL OR last_workflow IS NULL;
    WHILE NOT is_exact LOOP
      IF ${isForWorker('its_workflow', 'its_pool')} THEN
        list_workflows := list_workflows || its_workflow;
        list_pools := list_pools || its_pool;
        list_fronts := list_fronts || front;
      END IF;
      EXIT WHEN its_workflow = last_workflow AND its_pool = last_pool;
      SELECT * INTO its_workflow, its_pool, front FROM (${firstTurn(schema, '(its_workflow, its_pool)')}) AS next;
      EXIT WHEN NOT FOUND;
    END LOOP;
    is_exact := list_workflows IS NULL;
    LOOP
      IF is_exact THEN
        SELECT array_agg(workflow), array_agg(pool), array_agg(0) INTO list_workflows, list_pools, list_fronts
        FROM (${waitingLists(schema)}) AS list WHERE ${isForWorker()} AND waiting_since <= clock;
        is_waiting := list_workflows IS NOT NULL;
        EXIT WHEN NOT is_waiting;
      END IF;
      ${nextApps(schema)}
      IF is_exact THEN
        ${leaveTurns(schema)}
      END IF;
      round := 0;
      WHILE cardinality(apps) > 0 AND cardinality(chosen) < most AND (round = 0 OR is_exact OR NOT may_be_more) LOOP
        round := round + 1;
        ${takeRound(schema)}
      END LOOP;
      EXIT WHEN is_exact OR cardinality(chosen) = most OR (chosen <> '{}' AND NOT may_be_more);
      -- Applications with nothing due may have taken the places of others: search again, exactly.
      is_exact := true;
      may_be_more := false;
      chosen := '{}';
      served_apps := '{}';
    END LOOP;
    may_be_more := may_be_more OR (is_limited AND chosen <> '{}');
    IF chosen <> '{}' THEN
      ${noteServed(schema)}
    END IF;`
}

/** Writes the claim, or says why there is none. */
function grant(schema: string): string {
  return `
    IF chosen = '{}' THEN
      RETURN QUERY SELECT NULL::integer, NULL::json, NULL::jsonb, NULL::text, is_limited, is_waiting, may_be_more, 0;
    ELSE
      RETURN QUERY UPDATE ${schema}.jobs SET version = version + 1, status = 'STARTED', waiting_since = NULL,
          lease_until = clock + $2, nonce = $3, claims = coalesce(claims, '[]') ||
            jsonb_build_object('owner', $1, 'leaseMs', $2, 'nonce', $3, 'at', clock)
        WHERE id = ANY(chosen)
        RETURNING version, record, claims, id::text, is_limited, is_waiting, may_be_more,
          array_position(chosen, id);
    END IF;`
}

/** Whether fewer running jobs than $10 meet the condition. */
function isBelow(schema: string, condition: string): string {
  return `($10 IS NULL OR $10 > (SELECT count(*) FROM (
    SELECT FROM ${schema}.jobs AS running WHERE ${condition} LIMIT $10) AS counted))`
}

/** True or null: whether a job waits in the list of the row of `turns` and is due. */
const isDue = (schema: string) => `(SELECT true FROM ${schema}.jobs
  WHERE app = t.app AND workflow = t.workflow AND pool = t.pool AND waiting_since <= clock LIMIT 1)`

const runsFor = (app: string) => `running.app = ${app} AND running.status = 'STARTED' AND NOT running.deleted`

const isAmongApps = 'app <> ALL($4) AND ($13 IS NULL OR app = ANY($13))'

/** Whether the worker can run the workflow and has all labels that the job needs; null: any job will do. */
const isForWorker = (workflow = 'workflow', pool = 'pool') => `
  (($6 IS NULL OR ${workflow} = ANY($6)) AND ${workflow} <> ALL(closed_workflows)
    AND (${pool} = '' OR $8 IS NULL OR string_to_array(${pool}, ' ') <@ $8))`

/** Takes one job: behind a limit that it does not know, the planner expects many rows. */
function takeLapsed(schema: string): string {
  return `chosen := ARRAY(
    SELECT id FROM ${schema}.jobs AS job WHERE ${isAmongApps} AND id <> ALL($5) AND ${isForWorker()}
      AND app <> ALL(closed_apps)
      AND ${isBelow(schema, `${runsFor('job.app')} AND running.id <> job.id`)} AND ${lapsedBy('lapsed_by')}
    ${earliestLapsed} LIMIT 1 FOR UPDATE OF job SKIP LOCKED
  );`
}

/** Reads whether running jobs are limited, and what is paused. */
function readRules(schema: string): string {
  return `
    SELECT coalesce(bool_or(max_running IS NOT NULL), false),
      coalesce(bool_or(kind = 'deployment' AND state = 'paused'), false),
      coalesce(array_agg(id) FILTER (WHERE kind = 'application' AND state = 'paused'), '{}'),
      coalesce(array_agg(id) FILTER (WHERE kind = 'workflow' AND state = 'paused'), '{}')
    INTO is_limited, is_closed, closed_apps, closed_workflows FROM ${schema}.rules;`
}

/** Closes targets that have reached their limit of running jobs; without the lock, everything. */
function closeFull(schema: string): string {
  return `
    WITH begun AS MATERIALIZED (
      SELECT app, workflow, count(*) AS jobs FROM ${schema}.jobs WHERE lease_bucket IS NOT NULL GROUP BY app, workflow
    ),
    full_ones AS (
      SELECT kind, id FROM ${schema}.rules AS rule WHERE max_running <= (
        SELECT coalesce(sum(jobs), 0) FROM begun
        WHERE CASE kind WHEN 'application' THEN app = rule.id WHEN 'workflow' THEN workflow = rule.id ELSE true END
      )
      UNION ALL
      SELECT 'application', app FROM begun GROUP BY app HAVING sum(jobs) >= (
        SELECT max_running FROM ${schema}.rules WHERE kind = 'application' AND id = '${everyApplication}'
      ) AND NOT EXISTS (SELECT FROM ${schema}.rules AS own
        WHERE own.kind = 'application' AND own.id = begun.app AND own.max_running IS NOT NULL)
    )
    SELECT is_closed OR NOT $7 OR coalesce(bool_or(kind = 'deployment'), false),
      closed_apps || coalesce(array_agg(id) FILTER (WHERE kind = 'application'), '{}'),
      closed_workflows || coalesce(array_agg(id) FILTER (WHERE kind = 'workflow'), '{}')
    INTO is_closed, closed_apps, closed_workflows FROM full_ones;
    most := 1;`
}

/** Finds the applications in turn, longest unserved first, and whether there are more. */
function nextApps(schema: string): string {
  const firstApps = (condition: string, more = '') => `
    SELECT app, served, id FROM (
      SELECT app, served, id, workflow, pool FROM ${schema}.turns WHERE ${condition} ORDER BY served, id LIMIT no_limit
    ) AS t WHERE ${isAmongApps} AND app <> ALL(closed_apps)${more}
    LIMIT $11 + $12`
  const ofLists = (more = '') => `
    SELECT first.* FROM unnest(list_workflows, list_pools, list_fronts) AS list(workflow, pool, front)
    CROSS JOIN LATERAL (
      ${firstApps('workflow = list.workflow AND pool = list.pool AND served >= list.front', more)}
    ) AS first`
  const inTurn = (rows: string) => `
    SELECT coalesce(array_agg(app ORDER BY served, id), '{}'), min(served), coalesce(max(rows_seen), 0) >= $11 + $12
    INTO apps, first_served, may_be_more FROM (
      SELECT app, max(served) AS served, min(id) AS id, sum(count(*)) OVER () AS rows_seen FROM (${rows}) AS first
      GROUP BY app ORDER BY 2, 3 LIMIT $11 + $12
    ) AS turn;`
  const isBelowRunning = ` AND ${isBelow(schema, runsFor('t.app'))}`
  // Setting up a condition takes time even where it is not needed.
  return `
    IF is_exact OR $10 IS NOT NULL THEN
      ${inTurn(`${ofLists(`${isBelowRunning} AND (NOT is_exact OR ${isDue(schema)})`)}
        UNION ALL (${firstApps('workflow IS NULL', isBelowRunning)})`)}
    ELSIF cardinality(list_workflows) > 1 THEN
      ${inTurn(ofLists())}
    ELSE
      apps := ARRAY(
        SELECT app FROM ${schema}.turns WHERE workflow = list_workflows[1] AND pool = list_pools[1]
          AND served >= list_fronts[1] AND ${isAmongApps} AND app <> ALL(closed_apps)
        ORDER BY served, id LIMIT $11 + $12
      );
      may_be_more := cardinality(apps) = $11 + $12;
    END IF;
    is_alone := apps[1] = ALL(apps);`
}

/**
 * Takes one job of each application, or as many as are wanted of the only one. Keeps those applications in `apps` that
 * may have more. The jobs of one list are locked as they are found; of several, only the one that comes first.
 */
function takeRound(schema: string): string {
  const waiting = (app: string, workflow: string, pool: string, more = '') => `
    FROM ${schema}.jobs WHERE app = ${app} AND workflow = ${workflow} AND pool = ${pool} AND waiting_since <= clock
      AND id <> ALL($5) AND id <> ALL(chosen)${more} ORDER BY rank, waiting_since, id`
  const ofOneList = (app: string, more = '', limit = 'wanted') => `
    SELECT id ${waiting(app, 'list_workflows[1]', 'list_pools[1]', more)} LIMIT ${limit} FOR UPDATE SKIP LOCKED`
  const firstOfLists = (limit: string) => `
    SELECT job.id FROM unnest(list_workflows, list_pools) AS list(workflow, pool) CROSS JOIN LATERAL (
      SELECT id, rank, waiting_since ${waiting('turn.app', 'list.workflow', 'list.pool')} LIMIT ${limit}
    ) AS job ORDER BY rank, waiting_since, id`
  const ofLists = `
    SELECT locked.id FROM (${firstOfLists('wanted + $12')}) AS first CROSS JOIN LATERAL (
      SELECT id FROM ${schema}.jobs WHERE id = first.id AND waiting_since IS NOT NULL FOR UPDATE SKIP LOCKED
    ) AS locked LIMIT wanted`
  // Simultaneous creates may have added two rows for one application.
  const ofEach = (jobs: string) => `
    SELECT coalesce(array_agg(app), '{}'), coalesce(array_agg(id), '{}') INTO next_apps, next_ids FROM (
      SELECT turn.app, job.id FROM unnest(apps) WITH ORDINALITY AS turn(app, place) CROSS JOIN LATERAL (${jobs}) AS job
      WHERE turn.app <> ALL(apps[:turn.place - 1]) LIMIT most - cardinality(chosen)
    ) AS taken;`
  return `
    wanted := CASE WHEN cardinality(apps) = 1 AND NOT may_be_more THEN most - cardinality(chosen) ELSE 1 END;
    IF cardinality(list_workflows) > 1 THEN
      ${ofEach(ofLists)}
    ELSIF NOT is_exact AND cardinality(apps) = 1 AND $14 = ARRAY[apps[1], list_workflows[1], list_pools[1]] THEN
      next_ids := ARRAY(${ofOneList('apps[1]', ' AND rank < $15')});
      IF cardinality(next_ids) < wanted THEN
        next_ids := next_ids || ARRAY(
          ${ofOneList('apps[1]', ' AND (rank, waiting_since, id) > ($15, $16, $17)', 'wanted - cardinality(next_ids)')}
        );
      END IF;
      next_apps := CASE WHEN next_ids <> '{}' THEN apps ELSE '{}' END;
    ELSE
      ${ofEach(ofOneList('turn.app'))}
    END IF;
    chosen := chosen || next_ids;
    FOREACH its_app IN ARRAY next_apps LOOP
      served_apps := array_remove(served_apps, its_app) || its_app;
    END LOOP;
    IF cardinality(list_workflows) > 1 AND cardinality(chosen) < most AND NOT may_be_more THEN
      -- Whether any are left that other claims are taking.
      may_be_more := EXISTS (
        SELECT FROM unnest(apps) AS turn(app) CROSS JOIN LATERAL (${firstOfLists('1')}) AS job
        WHERE wanted > 1 OR turn.app <> ALL(next_apps)
      );
    END IF;
    apps := CASE WHEN wanted = 1 THEN next_apps ELSE '{}' END;`
}

/** Records the turn. Not for a lone application that was served before: any new application precedes it in any case. */
function noteServed(schema: string): string {
  return `
    IF is_alone THEN
      is_alone := (SELECT min(app) = max(app) FROM ${schema}.turns)
        AND NOT EXISTS (SELECT FROM ${schema}.turns WHERE app = served_apps[1] AND served = 0);
    END IF;
    IF NOT is_alone THEN
      base := nextval('${schema}.turn');
      UPDATE ${schema}.turns SET served = base + array_position(served_apps, app)
      WHERE app = ANY(served_apps) AND id = ANY(ARRAY(
        SELECT id FROM ${schema}.turns WHERE app = ANY(served_apps) FOR NO KEY UPDATE SKIP LOCKED
      ));
    END IF;`
}
