import { createHmac, randomBytes } from 'node:crypto'
import { StemworkError } from '../errors.js'

/**
 * Headers that sign a webhook message after the Standard Webhooks specification 1.0 (symmetric, `v1`): base64 of
 * HMAC-SHA256 over `<id>.<timestamp>.<payload>`, keyed with the bytes behind `whsec_`.
 *
 * @param sentAt epoch milliseconds of this try; the header carries seconds.
 */
export function webhookHeaders(
  secret: string,
  message: { id: string; sentAt: number; payload: string },
): Record<string, string> {
  const timestamp = String(Math.floor(message.sentAt / 1000))
  const signature = createHmac('sha256', secretKey(secret))
    .update(`${message.id}.${timestamp}.${message.payload}`)
    .digest('base64')
  return { 'webhook-id': message.id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` }
}

/** A new signing secret: `whsec_` and 32 random bytes in base64. */
export function newWebhookSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

/** @throws StemworkError `INVALID_OPTIONS` for a secret of another form. */
export function secretKey(secret: string): Buffer {
  const encoded = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1]
  const key = Buffer.from(encoded ?? '', 'base64')
  if (key.length >= 24 && key.length <= 64) return key
  throw new StemworkError('INVALID_OPTIONS', 'A webhook secret must be "whsec_" and the base64 of 24 to 64 bytes.')
}
