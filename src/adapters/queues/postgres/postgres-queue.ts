import {
  invalidOptions,
  requireOption,
  requireTimes,
  StemworkError,
  storeUnavailable,
} from '../../../core/engine/errors.js'
import type { JobQueue } from '../../../core/engine/ports/job-queue.js'
import { defaultLogger, type Logger, steadyLogger } from '../../../core/engine/ports/logger.js'
import { type PostgresPool, query, surviveLostConnections } from '../../stores/postgres/database.js'
import { requireSchemaName } from '../../stores/postgres/schema-name.js'
import { coalesced } from '../../shared/coalesced.js'
import { within } from '../../../core/engine/ports/within.js'
import { ListeningConnection } from './listening-connection.js'
import { type Subscription, subscription } from './subscription.js'

/** A payload has at most 8,000 bytes. */
const mostAddresses = 100
/** Node ends longer waits at once. */
const longestTimerMs = 2 ** 31 - 1

export interface PostgresQueueOptions {
  /**
   * The host's `pg` Pool, of at least two connections: a subscribed queue keeps one of them. The queue never ends it.
   * LISTEN needs Postgres itself, or a pooler in session mode.
   */
  pool: PostgresPool
  /** Name of the channel, which is the schema of the stores. Default: `stemwork`. */
  schema?: string
  /** How long Postgres may take to answer before a call fails, or the connection counts as lost. Default: 5000. */
  answerTimeoutMs?: number
  /** Interval of checks that the listening connection still answers. Default: 60000. */
  checkIntervalMs?: number
  /** Default: warnings and errors go to stderr. */
  logger?: Logger
}

/**
 * Wakes the workers of many processes by LISTEN and NOTIFY of the Postgres that has the jobs. A notification reaches
 * every worker; its addressees ask the store, and nothing is kept. A call after each reconnect makes up for
 * notifications that were missed. Delayed notifications are timers of this process. Connects at the first use.
 *
 * @example
 * const { jobs, applications, migrate } = postgresStores({ pool })
 * await migrate()
 * const engine = createEngine({ jobs, applications, blobs, queue: postgresQueue({ pool }) })
 * @throws StemworkError `INVALID_OPTIONS`.
 */
export function postgresQueue(options: PostgresQueueOptions): JobQueue {
  requireOption(typeof options?.pool?.query === 'function', options, 'postgresQueue({ pool })', 'a Pool of pg')
  const { pool, schema = 'stemwork', answerTimeoutMs = 5000, checkIntervalMs = 60_000 } = options
  const logger = steadyLogger(options.logger ?? defaultLogger)
  requireSchemaName(schema)
  requireTimes('postgresQueue', { answerTimeoutMs, checkIntervalMs }, 1, longestTimerMs)
  if (pool.options?.max === 1)
    throw invalidOptions(
      'The pool allows only one connection, which a subscribed queue needs for itself. Set its `max` to 2 or more.',
    )
  surviveLostConnections(pool)

  const subscriptions = new Set<Subscription>()
  const delayed = new Set<NodeJS.Timeout>()
  let listening: ListeningConnection | undefined
  let closing: Promise<void> | undefined
  /** The addresses of the next notification; `undefined`: all workers. */
  let meant: Set<string> | undefined = new Set()
  const send = coalesced(async () => {
    const addresses = [...(meant ?? [])]
    meant = new Set()
    await ask('SELECT pg_notify($1, $2)', [schema, addresses.length > mostAddresses ? '' : addresses.join(' ')])
  })

  return {
    traits: { scope: 'shared', wakes: 'all' },

    async notify({ delayMs = 0, workers } = {}) {
      refuseClosed()
      if (delayMs <= 0) return await notifyNow(workers)
      const timer = setTimeout(() => {
        delayed.delete(timer)
        notifyNow(workers).catch((error: unknown) =>
          logger.warn(
            { queue: schema, err: error },
            'A delayed notification could not be sent; the next sweep does its work.',
          ),
        )
      }, delayMs)
      timer.unref()
      delayed.add(timer)
    },

    async subscribe(listener, { address } = {}) {
      refuseClosed()
      const added = subscription(listener, address)
      subscriptions.add(added)
      listening ??= new ListeningConnection({ pool, channel: schema, answerTimeoutMs, checkIntervalMs, logger }, wake)
      // Earlier notifications are not kept: there may have been some.
      if (listening.isHearing) added.wake()
      return { stop: () => stop(added) }
    },

    async check() {
      refuseClosed()
      await ask('SELECT 1')
    },

    close() {
      return (closing ??= close())
    },
  }

  /** The pool itself may wait forever, for a free connection or for a server that does not answer. */
  async function ask(text: string, values?: unknown[]): Promise<void> {
    await within(query(pool, text, values, { timeoutMs: answerTimeoutMs }), answerTimeoutMs, () => noAnswer())
  }

  function noAnswer(): StemworkError {
    return storeUnavailable(
      `Postgres did not answer the queue within ${answerTimeoutMs} ms. Try again. If this continues, check the ` +
        'server and whether the pool has a free connection.',
      { retryable: true },
    )
  }

  function notifyNow(workers: readonly string[] | undefined): Promise<void> {
    meant = workers && meant && new Set([...meant, ...workers])
    return send()
  }

  function wake(payload: string): void {
    const addresses = new Set(payload === '' ? [] : payload.split(' '))
    for (const one of subscriptions) if (one.isMeant(addresses)) one.wake()
  }

  async function stop(stopped: Subscription): Promise<void> {
    subscriptions.delete(stopped)
    const unused = subscriptions.size === 0 ? listening : undefined
    if (unused) listening = undefined
    await Promise.all([stopped.stop(), unused?.close()])
  }

  async function close(): Promise<void> {
    for (const timer of delayed) clearTimeout(timer)
    delayed.clear()
    await Promise.all([...subscriptions].map(stop))
  }

  function refuseClosed(): void {
    if (closing) throw new StemworkError('SHUTTING_DOWN', 'The queue was closed. Create a new one.')
  }
}
