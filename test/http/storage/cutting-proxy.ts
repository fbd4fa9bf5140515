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
 * A network that breaks each connection, without notice to either side, after the given number of bytes.
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
    let rest = bytesOfConnection
    const end = () => {
      client.destroy()
      upstream.destroy()
    }
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', end).on('close', () => {
        sockets.delete(socket)
        end()
      })
    }
    upstream.pipe(client)
    client.on('data', (chunk) => {
      rest -= chunk.byteLength
      if (rest >= 0)
        return void (upstream.write(chunk) || (client.pause(), upstream.once('drain', () => client.resume())))
      if (proxy.cuts++ === 0 && staysDown) {
        proxy.isDown = true
        for (const socket of sockets) socket.destroy()
      }
      end()
    })
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
