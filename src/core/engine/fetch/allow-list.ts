import { isIP } from 'node:net'
import { invalidOptions, type StemworkError } from '../errors.js'
import { blockOf } from './address-ranges.js'

/**
 * The operator's exceptions to the address guard.
 *
 * @throws StemworkError `INVALID_OPTIONS` naming the invalid entry
 */
export function allowList(entries: readonly string[]) {
  const parsed = entries.map(parse)
  return {
    /** Whether the host is listed by its name. */
    lists(host: string): boolean {
      return parsed.some((entry) => entry.block === undefined && entry.host === host)
    },
    allows(host: string, address: string, port: number): boolean {
      const family = isIP(address)
      if (family === 0) return false
      return parsed.some(
        (entry) =>
          (entry.port === undefined || entry.port === port) &&
          (entry.block ? entry.block.check(address, family === 4 ? 'ipv4' : 'ipv6') : entry.host === host),
      )
    },
  }
}

function parse(entry: string) {
  const { name, port } = split(entry)
  try {
    if (name.includes('/') || isIP(name) !== 0) return { block: blockOf(name), host: name, port }
    const url = new URL(`http://${name}/`)
    const host = url.hostname.replace(/\.$/, '')
    const plain = url.host === url.hostname && url.pathname === '/' && url.username === '' && /^[^*]+$/.test(host)
    if (!plain) throw new RangeError('not a host name')
    return { block: isIP(host) === 0 ? undefined : blockOf(host), host, port }
  } catch (error) {
    throw invalid(entry, error)
  }
}

/** Splits off the port after the last colon, unless the colon belongs to a bare IPv6 address. */
function split(entry: string): { name: string; port: number | undefined } {
  const match = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d{1,5}))?$/.exec(entry)
  if (!match) return { name: entry, port: undefined }
  const port = match[3] === undefined ? undefined : Number(match[3])
  if (port === 0 || (port ?? 0) > 65_535) throw invalid(entry)
  return { name: match[1] ?? match[2] ?? '', port }
}

function invalid(entry: string, cause?: unknown): StemworkError {
  return invalidOptions(
    `The allow-list entry ${JSON.stringify(entry)} is not valid. Expected a range such as 10.1.0.0/16, an address ` +
      'or a host name, ' +
      'each of these two with or without ":port".',
    cause,
  )
}
