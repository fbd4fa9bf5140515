import { type Backlog, mostCounted } from '../../../core/engine/ports/job-store.js'
import { mergedBacklog } from '../shared/merged-backlog.js'
import type { Row } from './database.js'
import { nowSql } from './job-row.js'
import { waitingLists } from './turns.js'

/** For `JobStore.backlog`. */
export function backlogStatements(schema: string) {
  return {
    waiting: `
      SELECT lane.workflow, lane.pool, due.jobs, ${nowSql} - due.first
      FROM (${waitingLists(schema)}) AS lane CROSS JOIN LATERAL (
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
