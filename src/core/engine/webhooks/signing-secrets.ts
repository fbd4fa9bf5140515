import { createHmac } from 'node:crypto'
import type { Application } from '../ports/application-store.js'
import { secretKey } from './signature.js'

/**
 * What signs the events of an application's jobs: its own secrets, of which there are two while one takes over from the other; else
 * one derived from the service's secret. Empty: nothing can sign them.
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
 * The webhook secret of an application that has none of its own, for its receivers: HMAC-SHA256 over its id, keyed with the
 * service's secret. Who knows it can forge events to no other application.
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
