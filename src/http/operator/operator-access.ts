import { createHash, timingSafeEqual } from 'node:crypto'
import type { Call } from '../routing/call.js'
import { Problem } from '../routing/problem.js'
import { sessionOf } from '../routing/page-session.js'
import { clientAddress } from '../routing/wrong-keys.js'

/**
 * Admits the holder of the operator's key, which is not an application's key: from the header, or from the cookie of
 * the page's session.
 *
 * @throws Problem as `requireOperatorKey`.
 */
export function requireOperator(call: Call): void {
  const header = call.request.headers.get('authorization')
  if (header !== null) return requireOperatorKey(call, header.replace(/^bearer\s+/i, '').trim())
  requireOperatorKey(call, sessionOf(call.request, call.service, 'operator')?.key ?? '')
}

/** @throws Problem `UNAUTHORIZED`; `RATE_LIMITED` for a wrong one after too many of them from one address. */
export function requireOperatorKey(call: Call, given: string): void {
  const { options, wrongKeys } = call.service
  // First, so that nobody at the same address locks the operator out.
  if (options.operator && isSame(given, options.operator.key)) return
  if (given !== '') {
    const address = clientAddress(call.request, options.trustProxy)
    wrongKeys.refuseExcess(address, 'any')
    wrongKeys.count(address, 'any')
  }
  throw new Problem('UNAUTHORIZED', "Send the operator's key as the raw value of the Authorization header.")
}

/** Hashed, so that the time reveals nothing about the length either. */
function isSame(a: string, b: string): boolean {
  const [left, right] = [a, b].map((text) => createHash('sha256').update(text).digest())
  return left !== undefined && right !== undefined && timingSafeEqual(left, right)
}
