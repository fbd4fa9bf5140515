import { isIPv4, isIPv6 } from 'node:net'
import type { ApiRequest } from './api-request.js'
import { addressGroup } from '../auth/address-group.js'
import type { HandlerOptions } from '../options.js'
import { Problem } from './problem.js'

const maxAddresses = 10_000

/** `own`: of our form with a valid checksum, so no typing error. `any`: all others. Each has its own count. */
export type KeyForm = 'own' | 'any'

/** Counts wrong API keys by address, in this process and in bounded memory. */
export class WrongKeys {
  readonly #rate: HandlerOptions['rateLimits']['wrongKeys']
  readonly #now: () => number
  /** Tokens left at a time, by form and address; the most recently counted ones are at the end. */
  readonly #buckets = new Map<string, { tokens: number; at: number }>()

  /** @param now monotonic milliseconds. */
  constructor(rate: HandlerOptions['rateLimits']['wrongKeys'], now: () => number = () => performance.now()) {
    this.#rate = rate
    this.#now = now
  }

  /** @throws Problem `RATE_LIMITED` if too many came from the address. An unknown address is let through. */
  refuseExcess(address: string | undefined, form: KeyForm): void {
    if (!this.#rate || address === undefined) return
    const tokens = this.#tokens(`${form} ${address}`)
    if (tokens >= 1) return
    const { requests, perSeconds } = this.#rate
    throw new Problem(
      'RATE_LIMITED',
      `Too many requests with wrong API keys came from this address: more than ${requests} in ${perSeconds} s. ` +
        'Check the key, and wait for the time in Retry-After.',
      { headers: { 'retry-after': String(Math.ceil(((1 - tokens) * perSeconds) / requests)) } },
    )
  }

  count(address: string | undefined, form: KeyForm): void {
    if (!this.#rate || address === undefined) return
    const counted = `${form} ${address}`
    const tokens = Math.max(0, this.#tokens(counted) - 1)
    this.#buckets.delete(counted)
    this.#buckets.set(counted, { tokens, at: this.#now() })
    for (const oldest of this.#buckets.keys()) {
      if (this.#buckets.size <= maxAddresses) break
      this.#buckets.delete(oldest)
    }
  }

  #tokens(counted: string): number {
    if (!this.#rate) return Infinity
    const { requests, perSeconds } = this.#rate
    const bucket = this.#buckets.get(counted)
    if (!bucket) return requests
    return Math.min(requests, bucket.tokens + ((this.#now() - bucket.at) * requests) / (perSeconds * 1000))
  }
}

/**
 * The address of a request, if known, as grouped by `addressGroup`: behind a trusted proxy, the last one that it wrote.
 */
export function clientAddress(request: ApiRequest, trustProxy: boolean): string | undefined {
  const forwarded = trustProxy ? request.headers.get('x-forwarded-for')?.split(',').at(-1)?.trim() : undefined
  const address = forwarded && (isIPv4(forwarded) || isIPv6(forwarded)) ? forwarded : request.remoteAddress
  return address === undefined ? undefined : addressGroup(address)
}

/** Who takes turns for a request without an application: its address. */
export const ownerWithoutKey = (request: ApiRequest, trustProxy: boolean): string =>
  `address ${clientAddress(request, trustProxy)}`
