import type { LookupAddress } from 'node:dns'
import { lookup, Resolver } from 'node:dns/promises'

export interface ResolverOptions {
  /** Default: the name servers of the system. */
  servers?: readonly string[]
  /** How long one name server may take per attempt. Default: 2,000. */
  timeoutMs?: number
  /** Default: 2. */
  tries?: number
}

/**
 * Queries the name servers directly for all addresses of a public name. The system's resolver (`dns.lookup`) is not
 * used: it cannot be cancelled, and its few threads are shared with the file system and all other lookups, so forty
 * dead names of one client would block the inputs and webhooks of all others. The drawback: names from the hosts file,
 * a search domain or mDNS are found only if they are on the operator's allow list (`resolveWithSystem`).
 *
 * @throws the signal's reason; an error with the `code` of `node:dns` if neither IPv4 nor IPv6 addresses are known
 */
export async function resolvePublicName(
  host: string,
  signal: AbortSignal,
  { servers, timeoutMs = 2_000, tries = 2 }: ResolverOptions = {},
): Promise<LookupAddress[]> {
  signal.throwIfAborted()
  const resolver = new Resolver({ timeout: timeoutMs, tries })
  if (servers) resolver.setServers(servers)
  const cancel = () => resolver.cancel()
  signal.addEventListener('abort', cancel, { once: true })
  try {
    const [four, six] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
    signal.throwIfAborted()
    const found = [
      ...(four.status === 'fulfilled' ? four.value.map((address) => ({ address, family: 4 })) : []),
      ...(six.status === 'fulfilled' ? six.value.map((address) => ({ address, family: 6 })) : []),
    ]
    if (found.length > 0) return found
    // A temporary failure takes precedence: that address family may still exist.
    const failures = [four, six].flatMap((answer) => (answer.status === 'rejected' ? [answer.reason as Error] : []))
    throw failures.find((error) => !isAbsent(error)) ?? failures[0] ?? new Error(`${host} has no address`)
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

/** Uses the system's resolver, with hosts file, search domains and mDNS, for names that the operator has listed. */
export async function resolveWithSystem(host: string): Promise<LookupAddress[]> {
  return await lookup(host, { all: true })
}

function isAbsent(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOTFOUND' || error.code === 'ENODATA')
}
