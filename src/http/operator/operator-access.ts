import { createHash, timingSafeEqual } from 'node:crypto'
import type { Call } from '../routing/call.js'
import { Problem } from '../routing/problem.js'
import { clientAddress } from '../routing/wrong-keys.js'

/**
 * Admits the holder of the operator's key, which is not an application's key.
 *
 * @throws Problem `UNAUTHORIZED`; `RATE_LIMITED` after too many wrong keys from one address.
 */
export function requireOperator(call: Call): void {
  const { options, wrongKeys } = call.service
  const address = clientAddress(call.request, options.trustProxy)
  wrongKeys.refuseExcess(address)
  const given =
    call.request.headers
      .get('authorization')
      ?.replace(/^bearer\s+/i, '')
      .trim() ?? ''
  if (options.operator && isSame(given, options.operator.key)) return
  if (given !== '') wrongKeys.count(address)
  throw new Problem('UNAUTHORIZED', "Send the operator's key as the raw value of the Authorization header.")
}

/** Hashed, so that the time reveals nothing about the length either. */
function isSame(a: string, b: string): boolean {
  const [left, right] = [a, b].map((text) => createHash('sha256').update(text).digest())
  return left !== undefined && right !== undefined && timingSafeEqual(left, right)
}
