import { type Backlog } from '../../../core/engine/ports/job-store.js'
import { mergedBacklog } from '../shared/merged-backlog.js'
import type { Row } from './database.js'
import { nowSql } from './job-row.js'
import { mostCounted } from '../../../core/engine/job/most-counted.js'

/** For `JobStore.backlog`: from kind to kind, without reading the jobs in between. */
export function backlogStatements(schema: string) {
  const next = (behind: string) =>
    `SELECT workflow, pool FROM ${schema}.jobs WHERE waiting_since IS NOT NULL ${behind} ORDER BY workflow, pool ` +
    'LIMIT 1'
  return {
    waiting: `
      WITH RECURSIVE lane (workflow, pool) AS (
        (${next('')})
        UNION ALL
        SELECT other.workflow, other.pool FROM lane CROSS JOIN LATERAL (
          ${next('AND (jobs.workflow, jobs.pool) > (lane.workflow, lane.pool)')}
        ) AS other
      )
      SELECT lane.workflow, lane.pool, due.jobs, ${nowSql} - due.first FROM lane CROSS JOIN LATERAL (
        SELECT count(*) AS jobs, min(waiting_since) AS first FROM (
          SELECT waiting_since FROM ${schema}.jobs AS job WHERE job.workflow = lane.workflow AND job.pool = lane.pool
            AND waiting_since <= ${nowSql}
          ORDER BY waiting_since LIMIT ${mostCounted}
        ) AS counted
      ) AS due WHERE due.jobs > 0`,
    running: `
      SELECT workflow, pool, count(*) FROM (
        SELECT workflow, pool FROM ${schema}.jobs WHERE lease_bucket IS NOT NULL LIMIT ${mostCounted}
      ) AS running GROUP BY workflow, pool`,
  }
}

export function readBacklog(waiting: readonly Row[], running: readonly Row[]): Backlog[] {
  return mergedBacklog(
    waiting.map(([workflow, pool, queued, oldestMs]) => ({
      workflow: workflow ?? '',
      pool: pool ?? '',
      queued: Number(queued),
      oldestMs: Math.max(0, Number(oldestMs)),
    })),
    running.map(([workflow, pool, count]) => ({ workflow: workflow ?? '', pool: pool ?? '', running: Number(count) })),
  )
}
