import { randomUUID } from 'node:crypto'
import type { JobRecord } from '../job/job.js'
import type { WebhookMessage } from '../job/transitions.js'

/** Job events that a webhook can ask for. */
export const webhookEvents = ['job.succeeded', 'job.failed'] as const
export type WebhookEvent = (typeof webhookEvents)[number]

/** The messages that a change of `job` puts into its outbox, to be written together with the change. */
export function webhookMessages(job: JobRecord, event: WebhookEvent): WebhookMessage[] {
  if (!job.webhook || (job.webhook.events && !job.webhook.events.includes(event))) return []
  return [{ id: `msg_${randomUUID()}`, url: job.webhook.url, event }]
}
