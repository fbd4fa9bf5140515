import {
  idOf,
  isHeldBack,
  type RuleChange,
  type RuleTarget,
  rulesFor,
  type SchedulingRule,
} from '../../../core/engine/job/scheduling.js'
import type { JobRecord } from '../../../core/engine/job/job.js'
import { ruleOfRow } from '../shared/rule-of-row.js'
import type { Send } from './database.js'
import { columnText, nowSql } from './job-row.js'
import type { PlannedFunction } from './planned-functions.js'
import { waitingLists, waitingListsOf } from './turns.js'

/** The rules of `JobStore`, in a table of their own. Claims of the next job read it themselves. */
export function schedulingRules(schema: string) {
  async function read(run: Send): Promise<SchedulingRule[]> {
    const rows = await run(
      `SELECT kind, id, state, max_running FROM ${schema}.rules WHERE state <> 'open' OR max_running IS NOT NULL`,
      [],
    )
    return rows.map(([kind, id, state, maxRunning]) => ruleOfRow(kind, id, state, maxRunning))
  }

  return {
    read,

    async change(run: Send, target: RuleTarget, { state, maxRunning }: RuleChange): Promise<void> {
      await run(
        `INSERT INTO ${schema}.rules AS rule (kind, id, state, max_running) VALUES ($1, $2, coalesce($3, 'open'), $4)
        ON CONFLICT (kind, id) DO UPDATE SET state = coalesce($3, rule.state), 
          max_running = CASE WHEN $5 THEN $4 ELSE rule.max_running END`,
        [target.kind, columnText(idOf(target)), state ?? null, maxRunning ?? null, maxRunning !== undefined],
      )
    },

    /** Whether the rules keep this job from being claimed. Exact for a caller that holds the lock of claims. */
    async holdBack(run: Send, rules: readonly SchedulingRule[], job: JobRecord): Promise<boolean> {
      const running = new Map<string, number>()
      const keyOf = (target: RuleTarget) => `${target.kind} ${idOf(target)}`
      for (const { target, maxRunning } of rulesFor(rules, job)) {
        if (maxRunning === null) continue
        const condition =
          target.kind === 'application'
            ? `app = $2 AND status = 'STARTED' AND NOT deleted`
            : target.kind === 'workflow'
              ? 'workflow = $2 AND lease_bucket IS NOT NULL'
              : `$2 = '' AND lease_bucket IS NOT NULL`
        const [row] = await run(
          `SELECT count(*) FROM (SELECT FROM ${schema}.jobs WHERE ${condition} LIMIT $1) AS running`,
          [maxRunning, columnText(idOf(target))],
        )
        running.set(keyOf(target), Number(row?.[0]))
      }
      return isHeldBack(rules, job, (target) => running.get(keyOf(target)) ?? 0)
    },
  }
}

/** Counts for `JobStore.ahead`: in each list of the application, the jobs ahead are a range of an index. */
export function aheadStatement(schema: string): string {
  return `
    WITH own AS MATERIALIZED (
      SELECT app, rank, waiting_since, id FROM ${schema}.jobs
      WHERE id = $1 AND waiting_since <= ${nowSql}
    )
    SELECT least($2, coalesce(sum(ahead.jobs), 0)) FROM own
      CROSS JOIN LATERAL (${waitingListsOf(schema, 'own.app')}) AS list CROSS JOIN LATERAL (
      SELECT count(*) AS jobs FROM (
        SELECT FROM ${schema}.jobs AS job WHERE job.app = own.app AND job.workflow = list.workflow
          AND job.pool = list.pool
          AND (job.rank, job.waiting_since, job.id) < (own.rank, own.waiting_since, own.id)
          AND job.waiting_since <= ${nowSql} LIMIT $2
      ) AS counted
    ) AS ahead GROUP BY own.id`
}

/** Running jobs, for `JobStore.queue`. Parameters: $1 most jobs, $2 unreadable jobs. */
export function runningStatement(schema: string): string {
  return `
    SELECT version, record, claims, id FROM ${schema}.jobs WHERE lease_bucket IS NOT NULL AND id <> ALL($2::text[])
    LIMIT $1`
}

/**
 * Waiting jobs, for `JobStore.queue`, with the same parameters: one job of each application in turn, the first of each,
 * then the second. It looks at one job of each, then at twice as many until there are enough, so at no more than four
 * times as many as are wanted.
 *
 * A function, because Postgres takes such a statement for so much work that it compiles it, which takes 0.4 s of
 * processor time.
 */
export function queueInTurn(schema: string): PlannedFunction {
  const isDue = `waiting_since <= ${nowSql}`
  return {
    name: 'queue_in_turn',
    parameters: 'integer, text[]',
    columns: 'integer, json, jsonb, text',
    body: `
    DECLARE
      most integer := 1;
      next_ids text[];
    BEGIN
      LOOP
        WITH lists AS MATERIALIZED (SELECT workflow, pool FROM (${waitingLists(schema)}) AS list),
        turn AS MATERIALIZED (
          SELECT app, max(served) AS served, min(t.id) AS came FROM ${schema}.turns AS t
          WHERE EXISTS (SELECT FROM ${schema}.jobs WHERE app = t.app AND ${isDue})
          GROUP BY app ORDER BY 2, 3 LIMIT $1
        )
        SELECT array_agg(id ORDER BY nth, served, came) INTO next_ids FROM (
          SELECT found.id, row_number() OVER (PARTITION BY turn.app ORDER BY found.rank, found.waiting_since, found.id)
            AS nth, served, came
          FROM turn CROSS JOIN lists CROSS JOIN LATERAL (
            SELECT id, rank, waiting_since FROM ${schema}.jobs AS job
            WHERE job.app = turn.app AND job.workflow = lists.workflow AND job.pool = lists.pool AND job.${isDue}
              AND id <> ALL($2)
            ORDER BY rank, waiting_since, id LIMIT most
          ) AS found ORDER BY nth, served, came LIMIT $1
        ) AS upcoming WHERE nth <= most;
        EXIT WHEN cardinality(next_ids) >= $1 OR most >= $1;
        most := most * 2;
      END LOOP;
      RETURN QUERY SELECT version, record, claims, job.id::text
        FROM unnest(next_ids) WITH ORDINALITY AS next(id, place) JOIN ${schema}.jobs AS job ON job.id = next.id
        ORDER BY place;
    END`,
  }
}
