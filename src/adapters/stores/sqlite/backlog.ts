import { type Backlog, mostCounted } from '../../../core/engine/ports/job-store.js'
import { mergedBacklog } from '../shared/merged-backlog.js'
import type { SqliteDatabase } from './sqlite-database.js'

/** For `JobStore.backlog`: from one workflow and pool to the next, without reading the jobs in between. */
export function backlog(database: SqliteDatabase, now: number): Backlog[] {
  const waiting: Omit<Backlog, 'running'>[] = []
  let last = { workflow: '', pool: '' }
  for (;;) {
    const next = database.get<{ workflow: string; pool: string }>(
      'SELECT workflow, pool FROM jobs WHERE waiting_since IS NOT NULL AND (workflow, pool) > (?, ?) ORDER BY ' +
        'workflow, pool LIMIT 1',
      [last.workflow, last.pool],
    )
    if (!next) break
    const { workflow, pool } = next
    last = { workflow, pool }
    const found = database.get<{ queued: number; first: number | null }>(
      `SELECT count(*) AS queued, min(waiting_since) AS first FROM (
        SELECT waiting_since FROM jobs WHERE workflow = ? AND pool = ? AND waiting_since <= ?
          ORDER BY waiting_since LIMIT ?)`,
      [workflow, pool, now, mostCounted],
    )
    if (found && found.queued > 0) waiting.push({ ...last, queued: found.queued, oldestMs: now - (found.first ?? now) })
  }
  const running = database.all<{ workflow: string; pool: string; running: number }>(
    'SELECT workflow, pool, count(*) AS running FROM (SELECT workflow, pool FROM jobs WHERE lapses_at IS NOT NULL ' +
      'LIMIT ?) GROUP BY workflow, pool',
    [mostCounted],
  )
  return mergedBacklog(waiting, running)
}
