import type { Server } from 'node:http'
import { addressGroup } from '../auth/address-group.js'

/**
 * Closes connections of an address beyond `most`, so that one client's idle or slow connections leave room for others.
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
    // Idle keep-alive connections make room for the next one.
    server.closeIdleConnections()
    socket.destroy()
  })
}
