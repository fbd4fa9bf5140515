import { isIPv6 } from 'node:net'

/**
 * Groups addresses by client: an IPv4 address or, for IPv6, a 64-bit network, because one client has all its addresses.
 */
export function addressGroup(address: string): string {
  if (!isIPv6(address)) return address
  return /^::ffff:([\d.]+)$/i.exec(address)?.[1] ?? networkOf(address)
}

function networkOf(address: string): string {
  const [front = '', back] = address.replace(/%.*$/, '').toLowerCase().split('::')
  const first = front === '' ? [] : front.split(':')
  const last = back === undefined || back === '' ? [] : back.split(':')
  const zeros = back === undefined ? 0 : Math.max(0, 8 - first.length - last.length)
  const groups = [...first, ...Array<string>(zeros).fill('0'), ...last]
  return `${groups
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':')}::/64`
}
