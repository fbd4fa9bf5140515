import { StemworkError } from '../../../core/engine/errors.js'
import type { JobRecord } from '../../../core/engine/job/job.js'
import { alreadyExists, queueFull } from '../../../core/engine/job/queue-limit.js'
import { addUsage, quotaExceeded } from '../../../core/engine/job/quota.js'
import { addJobs } from './add-jobs-function.js'
import type { Limits } from './create-limits.js'
import { type PostgresPool, preparedStatement, type Row, sender, transaction } from './database.js'
import { type CreatedJob, rowOf } from './job-inserts.js'
import { columnText, parseRecord } from './job-row.js'
import { plannedCall } from './planned-functions.js'
import { parseUsage } from './usage.js'

/** The job that was added, or why it was not. */
export type AddedJob = CreatedJob | StemworkError

/** One statement for jobs of one application: without idempotency keys, or a single one. */
export function addedJobs(pool: PostgresPool, schema: string, idempotencyMs: number) {
  const call = plannedCall(pool, schema, addJobs(schema))
  return async (app: string, jobs: readonly JobRecord[], limits: Limits): Promise<AddedJob[]> => {
    const { maxQueued = Infinity, quota } = limits
    const values = [
      columnText(app),
      JSON.stringify(jobs.map(rowOf)),
      columnText(jobs[0]?.idempotency?.key ?? null),
      idempotencyMs,
      maxQueued === Infinity ? null : Math.ceil(maxQueued),
      quota !== undefined,
      quota?.jobs ?? null,
      quota?.audioMinutes === undefined ? null : quota.audioMinutes * 60,
      quota?.bytes ?? null,
    ]
    let rows = await call(values, (work) => work((text, given) => preparedStatement(pool, text, given)))
    // The server's default is another isolation level.
    if (rows[0]?.[0] === 'isolated')
      rows = await call(values, (work) => transaction(pool, (client) => work(sender(client))))
    return outcomes(jobs, limits, rows)
  }
}

function outcomes(
  jobs: readonly JobRecord[],
  { maxQueued = Infinity, quota }: Limits,
  rows: readonly Row[],
): AddedJob[] {
  const [found] = rows
  if (found?.[0] === 'found') return [{ job: parseRecord(found[1], found[2]), created: false }]
  const made = new Map(rows.flatMap(([outcome, record, , id]) => (outcome === 'created' ? [[id, record]] : [])))
  const [room, queueRoom, ...usage] = rows.at(-1)?.slice(4) ?? []
  return jobs.map((job, index) => {
    const id = columnText(job.id)
    const record = made.get(id)
    // Only once, in case a batch holds an id twice.
    made.delete(id)
    if (record !== undefined) return { job: parseRecord(record, null), created: true }
    if (index < Number(room)) return alreadyExists(job.id)
    if (!quota || (queueRoom !== null && index >= Number(queueRoom))) return queueFull(maxQueued)
    const { used, now } = parseUsage(usage)
    const before = { jobs: Math.max(0, Number(room)) }
    return quotaExceeded(quota, addUsage(used, before), 1, now) ?? queueFull(maxQueued)
  })
}
