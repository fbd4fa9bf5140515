import type { LedgerEntry } from './ledger.js'

export interface StripeMeterOptions {
  /** `event_name` of the meter. */
  eventName: string
  /** Stripe's id of the customer, such as `cus_123`. */
  customer: string
  /** What is metered. Default: seconds of audio, rounded up. */
  value?: (entry: LedgerEntry) => number
}

/** Params of `stripe.billing.meterEvents.create`. */
export interface StripeMeterEvent {
  event_name: string
  identifier: string
  timestamp: number
  payload: { stripe_customer_id: string; value: string }
}

/**
 * An entry of the ledger as an event of a meter of Stripe. Sending it again counts once: Stripe takes one event for
 * each `identifier`, which is the entry's id.
 *
 * @example
 * for (const entry of await engine.usageEntries({ from, to, app }))
 *   await stripe.billing.meterEvents.create(stripeMeterEvent(entry, { eventName: 'audio_seconds', customer }))
 */
export function stripeMeterEvent(
  entry: LedgerEntry,
  { eventName, customer, value = ({ audioSeconds }) => Math.ceil(audioSeconds) }: StripeMeterOptions,
): StripeMeterEvent {
  return {
    event_name: eventName,
    identifier: entry.id,
    timestamp: Math.floor(entry.endedAt / 1000),
    payload: { stripe_customer_id: customer, value: String(value(entry)) },
  }
}
