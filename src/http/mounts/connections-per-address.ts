import type { Server } from 'node:http'
import { addressGroup } from '../auth/address-group.js'

/**
 * Closes the connections of an address beyond `most`: whatever one client does with its own, silent or slow, there is room for those of
 * others.
 */
export function limitPerAddress(server: Server, most: number): void {
  const counts = new Map<string, number>()
  server.on('connection', (socket) => {
    // Gone already.
    if (socket.remoteAddress === undefined) return
    const address = addressGroup(socket.remoteAddress)
    const count = (counts.get(address) ?? 0) + 1
    counts.set(address, count)
    socket.once('close', () => {
      const left = (counts.get(address) ?? 1) - 1
      if (left > 0) counts.set(address, left)
      else counts.delete(address)
    })
    if (count <= most) return
    // Those that only wait for a next request make room for the one that comes after this.
    server.closeIdleConnections()
    socket.destroy()
  })
}
