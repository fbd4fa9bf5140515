import { createServer, connect, type AddressInfo, type Socket } from 'node:net'

export interface CuttingProxy {
  /** Its origin, which replaces that of the server behind it. */
  origin: string
  /** Connections broken so far. */
  cuts: number
  /** While true, no connection gets through. */
  isDown: boolean
  close(): Promise<void>
}

/**
 * A network that breaks each connection, without notice to either side, after the given number of bytes in one
 * direction.
 *
 * @param staysDown true: the first break breaks all connections, until `isDown` is set to false
 */
export async function cuttingProxy(
  port: number,
  bytesOfConnection: number,
  { staysDown = false } = {},
): Promise<CuttingProxy> {
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    if (proxy.isDown) return void client.destroy()
    const upstream = connect(port, '127.0.0.1')
    const end = () => {
      client.destroy()
      upstream.destroy()
    }
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      let rest = bytesOfConnection
      sockets.add(from)
      from.on('error', end).on('close', () => {
        sockets.delete(from)
        end()
      })
      from.on('data', (chunk) => {
        rest -= chunk.byteLength
        if (rest >= 0) return void (to.write(chunk) || (from.pause(), to.once('drain', () => from.resume())))
        if (proxy.cuts++ === 0 && staysDown) {
          proxy.isDown = true
          for (const socket of sockets) socket.destroy()
        }
        end()
      })
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const proxy: CuttingProxy = {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cuts: 0,
    isDown: false,
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resolve())
      }),
  }
  return proxy
}
