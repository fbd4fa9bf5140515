import type { StemworkError } from '../../../core/engine/errors.js'
import { queueFull } from '../../../core/engine/job/queue-limit.js'
import type { CreateOptions } from '../../../core/engine/ports/job-store.js'
import { type PostgresClient, query } from './database.js'
import { columnText } from './job-row.js'
import { usageTable } from './usage.js'

export type Limits = Omit<CreateOptions, 'tx'>

/**
 * Any number that no other user of the database's advisory locks takes; with the hash it is one lock per application.
 */
const lockClass = 0x57e4
/** A process that stops during a create holds up the others of its application for so long, then loses the lock. */
const maxIdleMs = 5_000

/** What an application may add, as seen in a transaction. Exact under its lock. */
export class CreateLimits {
  readonly usage: ReturnType<typeof usageTable>
  readonly #schema: string

  constructor(schema: string) {
    this.#schema = schema
    this.usage = usageTable(schema)
  }

  /**
   * Until the transaction ends. In a separate statement: the count that comes after it sees what was committed before
   * its own statement began.
   */
  async lock(client: PostgresClient, app: string): Promise<void> {
    await query(
      client,
      `SELECT set_config('idle_in_transaction_session_timeout', $1, true),
        pg_advisory_xact_lock($2::int, hashtext($3))`,
      [String(maxIdleMs), lockClass, `${this.#schema} ${columnText(app)}`],
    )
  }

  /** Looks at no more jobs than the limit needs. */
  async queuedJobs(client: PostgresClient, app: string, limit: number): Promise<number> {
    const [row] = await query(
      client,
      `SELECT count(*) FROM (
        SELECT FROM ${this.#schema}.jobs WHERE app = $1 AND status = 'QUEUED' AND NOT deleted LIMIT $2
      ) AS queued`,
      [columnText(app), Math.ceil(limit)],
    )
    return Number(row?.[0])
  }

  /**
   * @param counts.own queued jobs that this transaction has added; there must be room for them and the others that it
   * is about to add
   */
  async refusal(
    client: PostgresClient,
    app: string,
    { maxQueued = Infinity, quota }: Limits,
    { own = 0, more = 1 }: { own?: number; more?: number } = {},
  ): Promise<StemworkError | undefined> {
    if (maxQueued !== Infinity) {
      const others = (await this.queuedJobs(client, app, maxQueued + own)) - own
      if (others + more > Math.ceil(maxQueued)) return queueFull(maxQueued)
    }
    return await this.usage.refusal((text, values) => query(client, text, values), app, quota, more)
  }
}
