import { Worker } from 'bullmq'
import type { QueueSubscription } from '../../../core/engine/ports/job-queue.js'
import type { Logger } from '../../../core/engine/ports/logger.js'
import type { RedisConnections } from './redis-connections.js'
import { within } from '../../../core/engine/ports/within.js'

/**
 * A notification whose taker has not contacted Redis for this long goes to another worker, at its second check: the
 * taker may never have received it.
 */
const lostAfterMs = 10_000

export interface SubscriptionOptions {
  name: string
  prefix: string
  connections: RedisConnections
  /** How long Redis may take to answer, and to confirm the end once the listener has returned. */
  answerTimeoutMs: number
  logger: Logger
  /** Leaves a late notification to the other subscribers. */
  passOn(): Promise<void>
}

/**
 * A BullMQ worker that calls the listener, one notification after the other: while the listener is busy, notifications
 * go to the other processes. It reconnects by itself until it is stopped.
 */
export function subscribe(listener: () => Promise<void>, options: SubscriptionOptions): QueueSubscription {
  const { name, prefix, connections, answerTimeoutMs, logger, passOn } = options
  const connection = connections.working(answerTimeoutMs)
  let running: Promise<void> | undefined
  let stopped: Promise<void> | undefined

  const worker = new Worker(
    name,
    async () => {
      if (stopped) return await passOn()
      // For BullMQ every notification succeeded: the outcome of jobs is the store's concern.
      running = Promise.resolve()
        .then(listener)
        .catch(() => {})
      await running
    },
    {
      connection,
      prefix,
      concurrency: 1,
      lockDuration: lostAfterMs,
      stalledInterval: lostAfterMs,
      removeOnComplete: { count: 0 },
      removeOnFail: { count: 0 },
    },
  )
  worker.on('error', (error) => connections.report(error))

  const stop = async () => {
    const closed = worker.close()
    closed.catch(() => {})
    await running
    // Without Redis, BullMQ waits forever to confirm the last notification.
    await within(closed, answerTimeoutMs, () => new Error('timeout')).catch((error: unknown) =>
      logger.warn({ queue: name, err: error }, 'Redis did not confirm the end of the subscription.'),
    )
    connection.disconnect()
  }
  return { stop: () => (stopped ??= stop()) }
}
