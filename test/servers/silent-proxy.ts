import { createServer, connect, type Socket } from 'node:net'

/** A TCP proxy that can go silent as a lost route does: it accepts and acknowledges everything, and passes nothing on. */
export interface SilentProxy {
  port: number
  /** All connections, old and new, get no byte through from now on. */
  silence(): void
  /** New connections work again; those from before stay silent. */
  restore(): void
  close(): Promise<void>
}

export async function startSilentProxy(target: { host: string; port: number }): Promise<SilentProxy> {
  const sockets = new Set<Socket>()
  let isSilent = false
  const muted = new WeakSet<Socket>()
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const upstream = connect({ ...target, allowHalfOpen: true })
    forward(client, upstream)
    forward(upstream, client)
  })
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('The proxy has no port.')
  return {
    port: address.port,
    silence() {
      isSilent = true
      for (const socket of sockets) muted.add(socket)
    },
    restore: () => void (isSilent = false),
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }

  function forward(from: Socket, to: Socket): void {
    sockets.add(from)
    if (isSilent) muted.add(from)
    from.on('data', (data) => {
      if (!muted.has(from)) to.write(data)
    })
    from.on('end', () => {
      if (!muted.has(from)) to.end()
    })
    from.on('error', () => {})
    from.on('close', () => {
      sockets.delete(from)
      if (!muted.has(from)) to.destroy()
    })
  }
}
