import type { LookupAddress } from 'node:dns'
import { once } from 'node:events'
import { BlockList, connect, isIP, type LookupFunction, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as connectSecurely } from 'node:tls'
import type { Target } from './address-guard.js'

/** Opens the connection for a request to one of the vetted addresses, with TLS if the target needs it. */
export type Dial = (target: Target, vetted: readonly LookupAddress[], signal: AbortSignal) => Promise<Duplex>

const maxAddresses = 8
const attemptTimeoutMs = 1_000

/**
 * Connects only to vetted addresses: they answer Node's lookup, and the socket's remote address is checked again before
 * a byte is sent.
 */
export const dial: Dial = async (target, vetted, signal) => {
  const addresses = vetted.slice(0, maxAddresses)
  const lookup: LookupFunction = (_host, options, callback) => {
    const [first] = addresses
    if (options.all) callback(null, [...addresses])
    else if (first) callback(null, first.address, first.family)
    else callback(new RangeError('there is no vetted address to dial'), '')
  }
  const { host, port } = target
  const socket = connect({
    host,
    port,
    lookup,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: attemptTimeoutMs,
  })
  await connected(socket, 'connect', signal)
  if (!includes(addresses, socket.remoteAddress)) {
    socket.destroy()
    throw new Error(`the connection led to ${socket.remoteAddress} instead of a vetted address`)
  }
  if (!target.secure) return socket
  // Given a socket, TLS compares the certificate with `servername`, or with `host` for an IP address.
  const secured = connectSecurely({
    socket,
    host,
    servername: target.literal ? undefined : host,
    ALPNProtocols: ['http/1.1'],
  })
  return await connected(secured, 'secureConnect', signal)
}

async function connected<Connection extends Socket>(
  socket: Connection,
  event: string,
  signal: AbortSignal,
): Promise<Connection> {
  socket.on('error', () => {})
  try {
    await once(socket, event, { signal })
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  }
}

function includes(addresses: readonly LookupAddress[], remote: string | undefined): boolean {
  if (remote === undefined || isIP(remote) === 0) return false
  const block = new BlockList()
  for (const { address } of addresses) block.addAddress(address, isIP(address) === 4 ? 'ipv4' : 'ipv6')
  return block.check(remote, isIP(remote) === 4 ? 'ipv4' : 'ipv6')
}
