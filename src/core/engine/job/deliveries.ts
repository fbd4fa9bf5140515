import type { Delivery } from './job.js'

/** A record that carries webhook messages: a job or a batch. The functions here are pure and return a new record. */
interface Outgoing {
  deliveries: Delivery[]
}

/** Bounds the record, which is read and written as a whole: retries and new jobs may end it any number of times. */
const maxMessagesKept = 20

/** Adds messages to send now. Drops the oldest ones, even unsent: later ends have superseded the ends they report. */
export function withMessages(
  deliveries: readonly Delivery[],
  messages: readonly Pick<Delivery, 'id' | 'url' | 'event'>[],
  now: number,
): Delivery[] {
  const added = messages.map((message): Delivery => ({
    ...message,
    occurredAt: now,
    attempts: 0,
    nextAttemptAt: now,
    outcome: 'pending',
    lastStatus: null,
  }))
  return [...deliveries, ...added].slice(-maxMessagesKept)
}

export function isPending({ outcome }: Pick<Delivery, 'outcome'>): boolean {
  return outcome === 'pending'
}

/** The pending message that is due first. */
export function earliestPending({ deliveries }: Outgoing): Delivery | undefined {
  let first: Delivery | undefined
  for (const delivery of deliveries) {
    const { nextAttemptAt } = delivery
    if (isPending(delivery) && nextAttemptAt !== null && nextAttemptAt < (first?.nextAttemptAt ?? Infinity))
      first = delivery
  }
  return first
}

/**
 * Claims the next attempt for one of several processes: `undefined` if the count of attempts has changed.
 *
 * @param change.retryInMs as in the change `beginDelivery`
 */
export function withTryBegun<Carrier extends Outgoing>(
  record: Carrier,
  { deliveryId, attempts, retryInMs }: { deliveryId: string; attempts: number; retryInMs: number | null },
  now: number,
): Carrier | undefined {
  return withDelivery(record, deliveryId, (delivery) =>
    delivery.attempts === attempts
      ? { ...delivery, attempts: attempts + 1, nextAttemptAt: retryInMs === null ? null : now + retryInMs }
      : undefined,
  )
}

/** Postpones the next attempt, without counting one. */
export function withTryDeferred<Carrier extends Outgoing>(
  record: Carrier,
  { deliveryId, delayMs }: { deliveryId: string; delayMs: number },
  now: number,
): Carrier | undefined {
  return withDelivery(record, deliveryId, (delivery) => ({ ...delivery, nextAttemptAt: now + delayMs }))
}

/** Records the outcome of an attempt. */
export function withTryEnded<Carrier extends Outgoing>(
  record: Carrier,
  { deliveryId, outcome, status }: { deliveryId: string; outcome: Delivery['outcome']; status: number | null },
): Carrier | undefined {
  return withDelivery(record, deliveryId, (delivery) => ({
    ...delivery,
    outcome,
    lastStatus: status,
    nextAttemptAt: outcome === 'pending' ? delivery.nextAttemptAt : null,
  }))
}

/** Changes one pending message. */
function withDelivery<Carrier extends Outgoing>(
  record: Carrier,
  id: string,
  change: (delivery: Delivery) => Delivery | undefined,
): Carrier | undefined {
  const pending = record.deliveries.find((delivery) => delivery.id === id && isPending(delivery))
  const changed = pending && change(pending)
  return changed && { ...record, deliveries: record.deliveries.with(record.deliveries.indexOf(pending), changed) }
}
