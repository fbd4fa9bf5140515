import { BlockList, isIP } from 'node:net'

// IANA's special-purpose registries for IPv4 and IPv6, and the one cloud metadata address in public space.
const ipv4Special: readonly [range: string, meaning: string][] = [
  ['0.0.0.0/8', 'this network'],
  ['10.0.0.0/8', 'private'],
  ['100.64.0.0/10', 'carrier-grade NAT'],
  ['127.0.0.0/8', 'loopback'],
  ['168.63.129.16/32', 'cloud metadata'],
  ['169.254.0.0/16', 'link-local and cloud metadata'],
  ['172.16.0.0/12', 'private'],
  ['192.0.0.0/24', 'protocol assignments'],
  ['192.0.2.0/24', 'documentation'],
  ['192.88.99.0/24', '6to4 relay'],
  ['192.168.0.0/16', 'private'],
  ['198.18.0.0/15', 'benchmarking'],
  ['198.51.100.0/24', 'documentation'],
  ['203.0.113.0/24', 'documentation'],
  ['224.0.0.0/4', 'multicast'],
  ['240.0.0.0/4', 'reserved and broadcast'],
]

/** The only public block of IPv6: mapped, NAT64, unique-local, link-local and multicast addresses lie outside. */
const ipv6Public = '2000::/3'
const ipv6Special: readonly [range: string, meaning: string][] = [
  ['2001::/23', 'protocol assignments, Teredo and ORCHID'],
  ['2001:db8::/32', 'documentation'],
  ['2002::/16', '6to4'],
  ['3ffe::/16', 'returned to IANA'],
  ['3fff::/20', 'documentation'],
]

const special = [...ipv4Special, ...ipv6Special].map(([range, meaning]) => ({
  block: blockOf(range),
  name: `${meaning}, ${range}`,
}))
const publicBlock = blockOf(ipv6Public)

/**
 * The special range that contains an IP address; `undefined` for a public address. Text that is not a plain IP address
 * is never public.
 */
export function specialRange(address: string): string | undefined {
  const family = isIP(address)
  if (family === 0 || address.includes('%')) return 'not a plain IP address'
  const type = family === 4 ? 'ipv4' : 'ipv6'
  if (type === 'ipv6' && !publicBlock.check(address, type)) return `not in ${ipv6Public}`
  return special.find(({ block }) => block.check(address, type))?.name
}

/**
 * A block list of one CIDR range or one address.
 *
 * @throws RangeError for other text
 */
export function blockOf(range: string): BlockList {
  const [address = '', prefix, ...rest] = range.split('/')
  const family = isIP(address)
  const bits = family === 4 ? 32 : 128
  const length = prefix === undefined ? bits : Number(prefix)
  if (family === 0 || rest.length > 0 || prefix === '' || !Number.isInteger(length) || length < 0 || length > bits) {
    throw new RangeError(`${JSON.stringify(range)} is neither an IP address nor a range such as 10.0.0.0/8`)
  }
  const block = new BlockList()
  block.addSubnet(address, length, family === 4 ? 'ipv4' : 'ipv6')
  return block
}
