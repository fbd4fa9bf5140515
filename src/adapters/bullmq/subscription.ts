import { Worker } from 'bullmq'
import { z } from 'zod'
import type { Logger } from '../../core/ports/logger.js'
import type { JobReference, QueueSubscription } from '../../core/ports/job-queue.js'
import type { RedisConnections } from './redis-connections.js'
import { within } from './time-limit.js'

const referenceSchema = z.object({ id: z.string(), app: z.string() })

export interface SubscriptionOptions {
  name: string
  prefix: string
  connections: RedisConnections
  concurrency: number
  /** How long Redis may take to confirm the end, once the handlers have returned. */
  closeTimeoutMs: number
  logger: Logger
}

/** A BullMQ worker that calls the handler. It reconnects by itself for as long as it is not stopped. */
export async function subscribe(handler: (reference: JobReference) => Promise<void>, options: SubscriptionOptions): Promise<QueueSubscription> {
  const { name, prefix, connections, concurrency, closeTimeoutMs, logger } = options
  const connection = connections.working()
  const running = new Set<Promise<void>>()

  const worker = new Worker<unknown>(
    name,
    async ({ data }) => {
      const reference = referenceSchema.safeParse(data)
      if (!reference.success) return logger.warn({ queue: name }, 'The queue delivered something that is no job reference; it is dropped.')
      const run = call(handler, reference.data)
      running.add(run)
      try {
        await run
      } finally {
        running.delete(run)
      }
    },
    { connection, prefix, concurrency, removeOnComplete: { count: 0 }, removeOnFail: { count: 0 } },
  )
  worker.on('error', (error) => logger.warn({ queue: name, error }, 'The queue reported an error; it goes on when Redis answers again.'))

  const stop = async () => {
    const closed = worker.close()
    closed.catch(() => {})
    while (running.size > 0) await Promise.allSettled(running)
    // Without Redis, BullMQ waits for ever to confirm the last deliveries; the store has long recorded what became of them.
    await within(closed, closeTimeoutMs, () => new Error('timeout')).catch((error: unknown) => logger.warn({ queue: name, error }, 'Redis did not confirm the end of the subscription.'))
    connection.disconnect()
  }
  let stopped: Promise<void> | undefined
  return { stop: () => (stopped ??= stop()) }
}

/** What becomes of the job is the store's affair: to the queue, every delivery has ended well. */
async function call(handler: (reference: JobReference) => Promise<void>, reference: JobReference): Promise<void> {
  try {
    await handler(reference)
  } catch {
    // The handler has reported it; a retry is rung for by whoever wants one.
  }
}
