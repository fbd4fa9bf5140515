import type { Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { addressGroup } from '../auth/address-group.js'

interface Connection {
  /** The response to its last request. */
  response: ServerResponse | undefined
  /** Sequence number of its last use: grows with each connection and request. */
  usedAt: number
}

/** The connections of one address. */
type Connections = Map<Duplex, Connection>

/**
 * Divides the connections of a server among addresses. If an address has too many, its connection that has been idle
 * longest (no request in progress, or none ever sent) is closed for the new one, or the new one if none is idle. If the
 * server is full, a connection of the address with the most makes room in the same way.
 *
 * @param bounds.upgraded connections that no longer carry requests
 * @returns a function to call at each request, since a listener would take microseconds of each; and one that returns
 * the response to the last request of a connection
 */
export function shareConnections(
  server: Server,
  { total, perAddress, upgraded }: { total: number; perAddress: number; upgraded: ReadonlySet<Duplex> },
): { onRequest(response: ServerResponse): void; lastResponse(socket: Duplex): ServerResponse | undefined } {
  const addresses = new Map<string, Connections>()
  const known = new WeakMap<Duplex, Connection>()
  let [open, uses] = [0, 0]

  const longestWaiting = (connections: Connections): Duplex | undefined => {
    let [longest, usedAt] = [undefined as Duplex | undefined, Infinity]
    for (const [socket, { response, usedAt: at }] of connections) {
      const isAnswered = !response || response.writableFinished || response.destroyed
      if (at < usedAt && isAnswered && !socket.destroyed && !upgraded.has(socket)) [longest, usedAt] = [socket, at]
    }
    return longest
  }
  const longestOfMost = () => {
    const [most] = [...addresses.values()].toSorted((a, b) => b.size - a.size)
    return most && longestWaiting(most)
  }

  // One more than allowed, so that this code chooses which connection is closed.
  server.maxConnections = total + 1
  server.on('connection', (socket) => {
    // Closed already, or handed back after a request for another protocol.
    if (socket.remoteAddress === undefined || known.has(socket)) return
    const address = addressGroup(socket.remoteAddress)
    const own: Connections = addresses.get(address) ?? new Map<Duplex, Connection>()
    const isTooMany = own.size >= perAddress
    if (isTooMany || open >= total) ((isTooMany ? longestWaiting(own) : longestOfMost()) ?? socket).destroy()
    const connection = { response: undefined, usedAt: ++uses }
    addresses.set(address, own.set(socket, connection))
    known.set(socket, connection)
    open++
    socket.once('close', () => {
      open--
      own.delete(socket)
      if (own.size === 0) addresses.delete(address)
    })
  })
  return {
    onRequest(response) {
      const connection = response.socket && known.get(response.socket)
      if (!connection) return
      connection.response = response
      connection.usedAt = ++uses
    },
    lastResponse: (socket) => known.get(socket)?.response,
  }
}
