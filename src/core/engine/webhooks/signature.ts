import { createHmac, randomBytes } from 'node:crypto'
import { invalidOptions } from '../errors.js'

/**
 * Headers that sign a webhook message by the Standard Webhooks specification 1.0 (symmetric, `v1`): base64 of
 * HMAC-SHA256 over `<id>.<timestamp>.<payload>`, keyed with the bytes after `whsec_`. There is one signature for each
 * secret; a receiver accepts the message if any of them matches.
 *
 * @param sentAt epoch milliseconds of this attempt; the header carries seconds.
 */
export function webhookHeaders(
  secrets: readonly string[],
  message: { id: string; sentAt: number; payload: string },
): Record<string, string> {
  const timestamp = String(Math.floor(message.sentAt / 1000))
  const signed = `${message.id}.${timestamp}.${message.payload}`
  const signatures = secrets.map(
    (secret) => `v1,${createHmac('sha256', secretKey(secret)).update(signed).digest('base64')}`,
  )
  return { 'webhook-id': message.id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') }
}

/** A new signing secret: `whsec_` and 32 random bytes in base64. */
export function newWebhookSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

export function isWebhookSecret(text: string): boolean {
  return keyOf(text) !== undefined
}

/** @throws StemworkError `INVALID_OPTIONS` for a secret of another form. */
export function secretKey(secret: string): Buffer {
  const key = keyOf(secret)
  if (key) return key
  throw invalidOptions('A webhook secret must be "whsec_" followed by 24 to 64 bytes in base64.')
}

function keyOf(secret: string): Buffer | undefined {
  const encoded = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1]
  const key = Buffer.from(encoded ?? '', 'base64')
  return key.length >= 24 && key.length <= 64 ? key : undefined
}
