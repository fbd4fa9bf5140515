import type { HandlerOptions } from '../options.js'
import { type Problem, rateLimited } from './problem.js'

/** The rate limit that a request counts against. */
export type RatePolicy = 'create' | 'status' | 'other' | 'link'

interface Bucket {
  tokens: number
  /** Milliseconds of the monotonic clock at which `tokens` was computed. */
  at: number
}

type Rate = Exclude<HandlerOptions['rateLimits'][RatePolicy], false>

/** Requests under one policy. */
interface Limit {
  policy: RatePolicy
  rate: Rate
  perMs: number
  /** Value of the `RateLimit-Policy` header. */
  policyHeader: string
  /** Buckets by application. */
  buckets: Map<string, Bucket>
  pruneAbove: number
}

const minPruneSize = 10_000

export type RateLimiter = ReturnType<typeof rateLimiter>

/** Token buckets, one for each application and policy, in this process. @param now monotonic milliseconds */
export function rateLimiter(
  rates: Pick<HandlerOptions['rateLimits'], RatePolicy>,
  now: () => number = () => performance.now(),
) {
  const policies = ['create', 'status', 'other', 'link'] as const
  const limits: Partial<Record<RatePolicy, Limit>> = Object.fromEntries(
    policies.flatMap((policy) => (rates[policy] ? [[policy, newLimit(policy, rates[policy])]] : [])),
  )
  return {
    /**
     * Counts one request and adds headers with the number left.
     *
     * @throws Problem `RATE_LIMITED`.
     */
    take(app: string, policy: RatePolicy, headers: Record<string, string>): void {
      const limit = limits[policy]
      if (!limit) return
      const { rate, perMs, buckets } = limit
      const at = now()
      let bucket = buckets.get(app)
      if (!bucket) {
        if (buckets.size >= limit.pruneAbove) prune(limit, at)
        buckets.set(app, (bucket = { tokens: rate.requests, at }))
      }
      const tokens = Math.min(rate.requests, bucket.tokens + (at - bucket.at) * perMs)
      bucket.at = at
      if (tokens >= 1) {
        bucket.tokens = tokens - 1
        addRateHeaders(headers, limit, Math.floor(tokens - 1), (rate.requests - tokens + 1) / perMs)
        return
      }
      bucket.tokens = tokens
      const waitMs = (1 - tokens) / perMs
      addRateHeaders(headers, limit, 0, waitMs)
      throw tooMany(rate, waitMs)
    },

    /** Charges an accepted request more, once its cost is known. The balance may become negative. */
    charge(app: string, policy: RatePolicy, requests: number): void {
      const bucket = limits[policy]?.buckets.get(app)
      if (bucket) bucket.tokens -= requests
    },

    /**
     * Refuses an accepted request if the application was charged too much while it waited.
     *
     * @throws Problem `RATE_LIMITED` if the balance is negative.
     */
    refuseDebtor(app: string, policy: RatePolicy): void {
      const limit = limits[policy]
      const bucket = limit?.buckets.get(app)
      if (!limit || !bucket) return
      const tokens = bucket.tokens + (now() - bucket.at) * limit.perMs
      if (tokens < 0) throw tooMany(limit.rate, (1 - tokens) / limit.perMs)
    },
  }
}

function tooMany({ requests, perSeconds }: Rate, waitMs: number): Problem {
  return rateLimited(
    `More than ${requests} such requests in ${perSeconds} s; a large list or batch counts as several. Wait for the ` +
      'time in Retry-After, then continue more slowly.',
    Math.ceil(waitMs / 1000),
  )
}

function newLimit(policy: RatePolicy, rate: Rate): Limit {
  return {
    policy,
    rate,
    perMs: rate.requests / (rate.perSeconds * 1000),
    policyHeader: `"${policy}";q=${rate.requests};w=${Math.ceil(rate.perSeconds)}`,
    buckets: new Map(),
    pruneAbove: minPruneSize,
  }
}

/** Forgets buckets that are full again: a new one is the same. */
function prune(limit: Limit, now: number): void {
  for (const [app, { at }] of limit.buckets) {
    if (now - at > limit.rate.perSeconds * 1000) limit.buckets.delete(app)
  }
  limit.pruneAbove = Math.max(minPruneSize, limit.buckets.size * 2)
}

/** https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/ */
function addRateHeaders(
  headers: Record<string, string>,
  { policy, policyHeader }: Limit,
  remaining: number,
  resetMs: number,
): void {
  headers['ratelimit-policy'] = policyHeader
  headers.ratelimit = `"${policy}";r=${remaining};t=${Math.ceil(resetMs / 1000)}`
}
