import { createHmac } from 'node:crypto'
import type { Application } from '../ports/application-store.js'
import { secretKey } from './signature.js'

/**
 * The secrets that sign the events of an application's jobs: its own, of which there are two during a rotation,
 * otherwise one derived from the service's secret. Empty: there is none.
 *
 * @param now epoch milliseconds
 */
export function signingSecrets(
  app: string,
  application: Pick<Application, 'webhookSecrets'> | undefined,
  serviceSecret: string | undefined,
  now: number,
): string[] {
  const own = (application?.webhookSecrets ?? []).filter(({ expiresAt }) => expiresAt === null || expiresAt > now)
  if (own.length > 0) return own.map(({ secret }) => secret)
  return serviceSecret === undefined ? [] : [applicationSecret(serviceSecret, app)]
}

/**
 * Derives the webhook secret of an application without its own, for its receivers: HMAC-SHA256 over its id, keyed with
 * the service's secret. It cannot be used to forge events for other applications.
 *
 * @param serviceSecret the option `webhooks.secret`
 * @param app id of the application
 */
export function applicationSecret(serviceSecret: string, app: string): string {
  const bytes = createHmac('sha256', secretKey(serviceSecret))
    .update(`stemwork webhook secret of ${app}`)
    .digest('base64')
  return `whsec_${bytes}`
}
