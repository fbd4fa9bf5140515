import { createServer, connect, type AddressInfo, type Socket } from 'node:net'

export interface CuttingProxy {
  /** Its origin, which stands for that of the server behind it. */
  origin: string
  /** Connections that were broken so far. */
  cuts: number
  close(): Promise<void>
}

/** A network that breaks each connection, without a word to either side, once so many bytes have gone up. */
export async function cuttingProxy(port: number, bytesOfConnection: number): Promise<CuttingProxy> {
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
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
      proxy.cuts++
      end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const proxy: CuttingProxy = {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cuts: 0,
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resolve())
      }),
  }
  return proxy
}
