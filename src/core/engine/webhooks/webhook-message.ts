import { randomUUID } from 'node:crypto'
import type { JobRecord } from '../job/job.js'
import type { WebhookMessage } from '../job/transitions.js'

/** Default job events of a webhook. */
export const webhookEvents = ['job.succeeded', 'job.failed'] as const
/** Event for each end of a job, if the webhook names it; the message contains the ledger entry. */
export const usageEvent = 'usage.recorded'
/** Events that a webhook may name. */
export const nameableEvents = [...webhookEvents, usageEvent] as const
export type WebhookEvent = (typeof webhookEvents)[number]

/** The webhook messages for an event of `job`, to be written together with the change. */
export function webhookMessages(job: JobRecord, event: WebhookEvent): WebhookMessage[] {
  if (!job.webhook) return []
  const { url, events } = job.webhook
  const wanted = [event, usageEvent].filter((name) => events?.includes(name) ?? name === event)
  return wanted.map((name) => ({ id: `msg_${randomUUID()}`, url, event: name }))
}
