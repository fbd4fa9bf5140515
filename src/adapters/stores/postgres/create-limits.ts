import type { StemworkError } from '../../../core/engine/errors.js'
import { queueFull } from '../../../core/engine/job/queue-limit.js'
import { quotaExceeded } from '../../../core/engine/job/quota.js'
import type { CreateOptions } from '../../../core/engine/ports/job-store.js'
import { createsClass } from './advisory-locks.js'
import { type PostgresClient, query, sender } from './database.js'
import { columnText } from './job-row.js'
import { usedToday } from './usage.js'

export type Limits = Omit<CreateOptions, 'tx'>

/** A process that stops during a create delays its application's other creates for this long, then loses the lock. */
const maxIdleMs = 5_000

/**
 * An expression that takes the application's lock until the transaction ends. In a separate statement: the count that
 * comes after it sees what was committed before its own statement began.
 */
export function lockApp(schema: string, app: string): string {
  return `set_config('idle_in_transaction_session_timeout', '${maxIdleMs}', true),
    pg_advisory_xact_lock(${createsClass}, hashtext('${schema} ' || ${app}))`
}

/** A query for the number of queued jobs, which looks at no more jobs than the limit needs. */
export function queuedJobs(schema: string, { app, limit, except }: { app: string; limit: string; except?: string }) {
  return `SELECT count(*) FROM (
    SELECT FROM ${schema}.jobs WHERE app = ${app} AND status = 'QUEUED' AND NOT deleted
      ${except ? `AND id <> ALL(${except})` : ''} LIMIT ${limit}
  ) AS queued`
}

export async function countQueued(client: PostgresClient, schema: string, app: string, limit: number): Promise<number> {
  const values = [columnText(app), Math.ceil(limit)]
  const [row] = await query(client, queuedJobs(schema, { app: '$1', limit: '$2' }), values)
  return Number(row?.[0])
}

/** Returns why the application may not add so many jobs, as seen in a transaction. Exact under its lock. */
export async function refusalOf(
  client: PostgresClient,
  schema: string,
  app: string,
  { maxQueued = Infinity, quota, more = 1 }: Limits & { more?: number },
): Promise<StemworkError | undefined> {
  if (maxQueued !== Infinity) {
    const queued = await countQueued(client, schema, app, maxQueued)
    if (queued + more > Math.ceil(maxQueued)) return queueFull(maxQueued)
  }
  if (!quota) return undefined
  const { used, now } = await usedToday(sender(client), schema, app)
  return quotaExceeded(quota, used, more, now)
}
