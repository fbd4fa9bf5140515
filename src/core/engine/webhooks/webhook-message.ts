import { randomUUID } from 'node:crypto'
import type { JobRecord } from '../job/job.js'
import type { WebhookMessage } from '../job/transitions.js'

/** Job events that a webhook gets unless it names others. */
export const webhookEvents = ['job.succeeded', 'job.failed'] as const
/** For each end of a job, if the webhook names it: the message has the entry of the ledger. */
export const usageEvent = 'usage.recorded'
/** What a webhook may name. */
export const nameableEvents = [...webhookEvents, usageEvent] as const
export type WebhookEvent = (typeof webhookEvents)[number]

/** The messages that a change of `job` puts into its outbox, to be written together with the change. */
export function webhookMessages(job: JobRecord, event: WebhookEvent): WebhookMessage[] {
  if (!job.webhook) return []
  const { url, events } = job.webhook
  const wanted = [event, usageEvent].filter((name) => events?.includes(name) ?? name === event)
  return wanted.map((name) => ({ id: `msg_${randomUUID()}`, url, event: name }))
}
