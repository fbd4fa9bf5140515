import type { Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { addressGroup } from '../auth/address-group.js'

/** The connections of one address. */
interface Connections {
  count: number
  /** Those without a request, the one that has been for longest first. */
  waiting: Set<Duplex>
}

/**
 * Divides the connections of a server among addresses. One beyond those of its address takes the place of the one that
 * has been without a request for longest, whether it ever sent one or not; if all have one, it is closed. Where the
 * server is full, one of the address with the most makes room in the same way.
 *
 * @param bounds.upgraded connections that are no longer for requests
 */
export function shareConnections(
  server: Server,
  { total, perAddress, upgraded }: { total: number; perAddress: number; upgraded: ReadonlySet<Duplex> },
): void {
  const addresses = new Map<string, Connections>()
  const known = new WeakMap<Duplex, { own: Connections; requests: number }>()
  let open = 0

  const longestWaiting = ({ waiting }: Connections) => [...waiting].find((socket) => !upgraded.has(socket))
  const longestOfMost = () => {
    const [most] = [...addresses.values()].toSorted((a, b) => b.count - a.count)
    return most && longestWaiting(most)
  }

  // One more, so that it is chosen here which is closed.
  server.maxConnections = total + 1
  server.on('connection', (socket) => {
    // Gone already.
    if (socket.remoteAddress === undefined) return
    const address = addressGroup(socket.remoteAddress)
    const own = addresses.get(address) ?? { count: 0, waiting: new Set() }
    addresses.set(address, own)
    known.set(socket, { own, requests: 0 })
    open++
    own.count++
    socket.once('close', () => {
      open--
      own.waiting.delete(socket)
      if (--own.count === 0) addresses.delete(address)
    })
    if (own.count > perAddress) (longestWaiting(own) ?? socket).destroy()
    else if (open > total) (longestOfMost() ?? socket).destroy()
    if (!socket.destroyed) own.waiting.add(socket)
  })
  server.on('request', ({ socket }, response) => {
    const state = known.get(socket)
    if (!state) return
    state.requests++
    state.own.waiting.delete(socket)
    response.once('close', () => {
      if (--state.requests === 0 && !socket.destroyed) state.own.waiting.add(socket)
    })
  })
}
