import { guardedFetch } from '../fetch/guarded-fetch.js'
import type { Delivery } from '../job/job.js'
import type { EngineOptions } from '../options.js'
import type { ApplicationStore } from '../ports/application-store.js'
import type { Logger } from '../ports/logger.js'
import { webhookHeaders } from './signature.js'
import { signingSecrets } from './signing-secrets.js'

export interface PostPorts {
  applications: ApplicationStore
  options: EngineOptions
  logger: Logger
}

/**
 * Makes one try of a message, signed by the secrets of its application.
 *
 * @param about what the log calls it
 * @returns the receiver's status; null when it could not be reached
 */
export async function postMessage(
  { app, delivery, data, about }: { app: string; delivery: Delivery; data: unknown; about: Record<string, unknown> },
  { applications, options, logger }: PostPorts,
  signal: AbortSignal,
): Promise<number | null> {
  const payload = JSON.stringify({
    type: delivery.event,
    timestamp: new Date(delivery.occurredAt).toISOString(),
    data,
  })
  try {
    const secrets = signingSecrets(app, await applications.getApplication(app), options.webhooks.secret, Date.now())
    if (secrets.length === 0) throw new Error('The application has no webhook secret any more.')
    const response = await guardedFetch(delivery.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...webhookHeaders(secrets, { id: delivery.id, sentAt: Date.now(), payload }),
      },
      body: Buffer.from(payload),
      signal: AbortSignal.any([AbortSignal.timeout(options.webhooks.timeoutMs), signal]),
      // Only the status counts.
      maxBytes: Infinity,
      policy: options.fetch,
      maxRedirects: 0,
    })
    response.cancel()
    return response.status
  } catch (error) {
    logger.info({ ...about, deliveryId: delivery.id, err: error }, 'A webhook receiver could not be reached.')
    return null
  }
}

/** What a try has come to. @param isLast whether no other follows */
export function outcomeOf(status: number | null, isLast: boolean): Delivery['outcome'] {
  if (status !== null && status >= 200 && status < 300) return 'delivered'
  if (status === 410) return 'gone'
  return isLast ? 'given_up' : 'pending'
}

/** Up to 20 % later, so that messages that failed together do not come back together. */
export function jittered(delayMs: number): number {
  return Math.round(delayMs * (1 + Math.random() * 0.2))
}
