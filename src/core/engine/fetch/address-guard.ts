import type { LookupAddress } from 'node:dns'
import { isIP } from 'node:net'
import { allowList } from './allow-list.js'
import { specialRange } from './address-ranges.js'
import { blocked, downloadFailed } from './fetch-failure.js'

/** Policy for addresses that may be reached on behalf of clients. Default: public ones on ports 80 and 443. */
export interface AddressPolicy {
  /** Allows every address, and every port of non-public ones. For development only. Default: false. */
  allowPrivate?: boolean
  /**
   * Additional addresses: `10.1.0.0/16`, `192.168.1.5`, `nas.local`, each on every port, or on one as in
   * `nas.local:8080` and `[fd00::5]:8080`.
   */
  allow?: readonly string[]
  /** Ports of public addresses besides 80 and 443. */
  ports?: readonly number[]
  /**
   * Tells clients why an address was refused or a connection failed, which reveals the internal network. Default:
   * false.
   */
  detail?: boolean
  /**
   * Resolves a host name to all its addresses. Default: queries the system's name servers directly; for names in
   * `allow`, and for all names with `allowPrivate`, the system's resolver with its hosts file and search domains.
   */
  resolver?: (host: string, signal: AbortSignal) => Promise<LookupAddress[]>
}

/** A URL that passed the check. */
export interface Target {
  url: URL
  /** Host name or IP address, without brackets and trailing dot. */
  host: string
  port: number
  secure: boolean
  /** Whether the host is an IP address, which is never resolved. */
  literal: boolean
}

const defaultPorts = new Map([
  ['http:', 80],
  ['https:', 443],
])

/**
 * The first half of the check, on the URL alone. The WHATWG parser normalizes all spellings of an IPv4 address (octal,
 * hexadecimal, short, full-width), and the normalized one is dialled later.
 *
 * @throws StemworkError `BAD_INPUT` with reason `blocked_address`
 */
export function targetOf(address: string | URL, policy: AddressPolicy): Target {
  const url = URL.canParse(String(address)) ? new URL(address) : undefined
  if (!url) throw blocked('the URL cannot be parsed', policy)
  const defaultPort = defaultPorts.get(url.protocol)
  if (defaultPort === undefined) throw blocked(`the scheme ${url.protocol} is not http or https`, policy)
  if (url.username !== '' || url.password !== '') throw blocked('the URL carries a user name or a password', policy)
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  if (host.split('.').includes('')) throw blocked('the host name has an empty part', policy)
  const target = {
    url,
    host,
    port: url.port === '' ? defaultPort : Number(url.port),
    secure: url.protocol === 'https:',
    literal: isIP(host) !== 0,
  }
  if (target.literal) requireOpen(target, host, policy)
  return target
}

/**
 * The second half of the check: every address of the host name must be open, not only the one that would be dialled,
 * because an answer that mixes public and private addresses is an attack.
 *
 * @returns the addresses that may be dialled, without duplicates
 * @throws StemworkError `BAD_INPUT`; the same for a name with internal addresses as for an unknown name, so that
 * clients cannot probe the names of an intranet
 */
export function vetAddresses(
  target: Target,
  resolved: readonly LookupAddress[],
  policy: AddressPolicy,
): LookupAddress[] {
  if (resolved.length === 0)
    throw downloadFailed(new Error(`${target.host} has no address`), policy, { retryable: false })
  for (const { address } of resolved) requireOpen(target, address, policy)
  return [...new Set(resolved.map(({ address }) => address))].map((address) => ({ address, family: isIP(address) }))
}

function requireOpen(target: Target, address: string, policy: AddressPolicy): void {
  const { allowPrivate = false, allow = [], ports = [] } = policy
  if (allowList(allow).allows(target.host, address, target.port)) return
  const range = specialRange(address)
  if (range !== undefined) {
    if (allowPrivate && isIP(address) !== 0) return
    const what = `${address} is not a public address (${range})`
    const option = policy.detail ? '' : `createEngine({ fetch: { allow: ['${target.host}'] } }), or `
    const remedy = `To allow it: ${option}--allow-private-inputs`
    const known = target.literal || target.host === 'localhost' || target.host.endsWith('.localhost')
    if (known || policy.detail) throw blocked(what, policy, remedy)
    throw downloadFailed(new Error(`${target.host}: ${what}. ${remedy}`), policy, { retryable: false })
  }
  if (![80, 443, ...ports].includes(target.port)) throw blocked(`port ${target.port} is not open`, policy)
}
