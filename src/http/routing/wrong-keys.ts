import { isIPv4, isIPv6 } from 'node:net'
import type { ApiRequest } from './api-request.js'
import { keepLatest } from '../keep-latest.js'
import { addressGroup } from '../auth/address-group.js'
import type { HandlerOptions } from '../options.js'
import { rateLimited } from './problem.js'

const maxAddresses = 10_000

/** `own`: of our form with a valid checksum, so no typing error. `any`: all others. Each has its own count. */
export type KeyForm = 'own' | 'any'

export type WrongKeys = ReturnType<typeof wrongKeyCounts>

/** Counts wrong API keys by address, in this process and in bounded memory. @param now monotonic milliseconds */
export function wrongKeyCounts(
  rate: HandlerOptions['rateLimits']['wrongKeys'],
  now: () => number = () => performance.now(),
) {
  /** Tokens left at a point in time, by form and address; the most recently counted ones are at the end. */
  const buckets = new Map<string, { tokens: number; at: number }>()
  const tokensOf = (counted: string, { requests, perSeconds }: Exclude<typeof rate, false>) => {
    const bucket = buckets.get(counted)
    if (!bucket) return requests
    return Math.min(requests, bucket.tokens + ((now() - bucket.at) * requests) / (perSeconds * 1000))
  }
  return {
    /** @throws Problem `RATE_LIMITED` if too many came from the address. An unknown address is let through. */
    refuseExcess(address: string | undefined, form: KeyForm): void {
      if (!rate || address === undefined) return
      const tokens = tokensOf(`${form} ${address}`, rate)
      if (tokens >= 1) return
      const { requests, perSeconds } = rate
      throw rateLimited(
        `Too many requests with wrong API keys came from this address: more than ${requests} in ${perSeconds} s. ` +
          'Check the key, and wait for the time in Retry-After.',
        Math.ceil(((1 - tokens) * perSeconds) / requests),
      )
    },

    count(address: string | undefined, form: KeyForm): void {
      if (!rate || address === undefined) return
      const counted = `${form} ${address}`
      const tokens = Math.max(0, tokensOf(counted, rate) - 1)
      keepLatest(buckets, counted, { tokens, at: now() }, maxAddresses)
    },
  }
}

/**
 * The address of a client, if known, grouped by `addressGroup`: behind a trusted proxy, the last that the proxy wrote.
 */
export function clientAddress(request: ApiRequest, trustProxy: boolean): string | undefined {
  const forwarded = trustProxy ? request.headers.get('x-forwarded-for')?.split(',').at(-1)?.trim() : undefined
  const address = forwarded && (isIPv4(forwarded) || isIPv6(forwarded)) ? forwarded : request.remoteAddress
  return address === undefined ? undefined : addressGroup(address)
}

/** Owner of the turns of a request without an application: its address. */
export const ownerWithoutKey = (request: ApiRequest, trustProxy: boolean): string =>
  `address ${clientAddress(request, trustProxy)}`
