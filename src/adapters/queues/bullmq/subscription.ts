import { Worker } from 'bullmq'
import type { Logger } from '../../../core/engine/ports/logger.js'
import type { JobReference, QueueSubscription } from '../../../core/engine/ports/job-queue.js'
import type { RedisConnections } from './redis-connections.js'
import { type Ring, ringSchema, taken } from './notifications.js'
import { Slots } from './slots.js'
import { within } from './time-limit.js'

export interface SubscriptionOptions {
  name: string
  prefix: string
  connections: RedisConnections
  concurrency: number
  /** How long Redis may take to confirm the end, once the handlers have returned. */
  closeTimeoutMs: number
  logger: Logger
  /** Told of a ring of several references that is here now. */
  onTaken(ringId: string): void
  /** Gives what cannot be served here now back to the queue. */
  giveBack(rings: Ring[]): Promise<void>
}

/** How long the references of a ring may wait here for free places before the other processes get them. */
const patienceMs = 50

/**
 * A BullMQ worker that calls the handler. It reconnects by itself for as long as it is not stopped.
 *
 * It takes one ring at a time, and only while a place is free: what waits, waits in Redis, where every process can have it. A ring
 * is over for BullMQ when its references are being handled and there is a place for the next; that a job is run to its end is the
 * affair of the store's leases.
 */
export async function subscribe(
  handler: (reference: JobReference) => Promise<void>,
  options: SubscriptionOptions,
): Promise<QueueSubscription> {
  const { name, prefix, connections, concurrency, closeTimeoutMs, logger, onTaken, giveBack } = options
  const connection = connections.working()
  const slots = new Slots(concurrency)

  const worker = new Worker<unknown>(
    name,
    async ({ id = '', data }) => {
      const ring = ringSchema.safeParse(data)
      if (!ring.success)
        return logger.warn({ queue: name }, 'The queue delivered something that is no job reference; it is dropped.')
      if (ring.data.ids.length > 1) onTaken(id)
      const rest = await startAll(ring.data)
      // If that fails, they are lost to the queue, and the sweep rings for them.
      if (rest.length > 0) await giveBack(rest)
      await slots.free()
    },
    { connection, prefix, concurrency: 1, removeOnComplete: { count: 0 }, removeOnFail: { count: 0 } },
  )
  worker.on('error', (error) =>
    logger.warn({ queue: name, error }, 'The queue reported an error; it goes on when Redis answers again.'),
  )

  /** Hands the references to the handler as places become free; returns those for which there was none. */
  async function startAll(ring: Ring): Promise<Ring[]> {
    const deadline = performance.now() + patienceMs
    for (const [place, id] of ring.ids.entries()) {
      if (!(await slots.free(deadline - performance.now()))) return taken(ring, place)
      slots.run(() => call(handler, { id, app: ring.app }))
    }
    return []
  }

  const stop = async () => {
    slots.close()
    const closed = worker.close()
    closed.catch(() => {})
    await slots.ended()
    // Without Redis, BullMQ waits for ever to confirm the last deliveries; the store has long recorded what became of them.
    await within(closed, closeTimeoutMs, () => new Error('timeout')).catch((error: unknown) =>
      logger.warn({ queue: name, error }, 'Redis did not confirm the end of the subscription.'),
    )
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
