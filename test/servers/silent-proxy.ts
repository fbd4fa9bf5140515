import { connect, createServer, type Socket } from 'node:net'

/**
 * A TCP proxy that disturbs its traffic. Its speciality is silence: connections stay open and what clients send is
 * acknowledged, but nothing is ever answered.
 */
export interface SilentProxy {
  /** The server's URL, with the proxy's address. */
  url: string
  /**
   * From now on, or after so many more bytes of the server, nothing comes through: half-open connections, old and new
   * ones. Resolves when the first connection has fallen silent.
   */
  silence(afterBytes?: number): Promise<void>
  /** New connections get through again; those that fell silent stay silent. */
  speak(): void
  /** Ends all connections at once, as a restart of the server does. */
  cut(): void
  /** While true, connections are closed as soon as they are made: the server is down. */
  setAway(isAway: boolean): void
  /** From now on every piece is delayed by so much, in both directions. */
  setDelay(delayMs: number): void
  /** Connections that clients have opened so far. */
  readonly accepted: number
  close(): Promise<void>
}

export async function startSilentProxy(target: string): Promise<SilentProxy> {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  let remaining = Infinity
  let accepted = 0
  let onSilent = () => {}
  const connections = new Set<() => void>()
  let isAway = false
  let delayMs = 0

  const server = createServer((client) => {
    accepted++
    if (isAway) return void client.destroy()
    const upstream = connect(Number(port), hostname)
    let isSilent = false
    const [towardsServer, towardsClient] = [inOrder(() => delayMs), inOrder(() => delayMs)]
    const fallSilent = () => {
      isSilent ||= remaining <= 0
      if (isSilent) onSilent()
    }
    connections.add(fallSilent)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => sockets.delete(socket))
    }
    client.on('data', (chunk) => {
      fallSilent()
      if (!isSilent) towardsServer(() => upstream.write(chunk))
    })
    upstream.on('data', (chunk) => {
      fallSilent()
      if (isSilent) return
      const passed = chunk.subarray(0, remaining)
      remaining -= passed.length
      towardsClient(() => client.write(passed))
      fallSilent()
    })
    client.on('close', () => {
      connections.delete(fallSilent)
      upstream.destroy()
    })
    upstream.on('close', () => {
      // As behind a dead router: not even the end of the connection gets through.
      if (!isSilent && remaining > 0) towardsClient(() => client.destroy())
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('The proxy has no port.')
  const url = new URL(target)
  url.hostname = '127.0.0.1'
  url.port = String(address.port)

  return {
    url: url.href.replace(/\/$/, ''),
    silence(afterBytes = 0) {
      remaining = afterBytes
      const silent = new Promise<void>((resolve) => (onSilent = resolve))
      for (const fallSilent of connections) fallSilent()
      return silent
    },
    speak: () => void (remaining = Infinity),
    cut() {
      for (const socket of sockets) socket.destroy()
    },
    setAway(away) {
      isAway = away
      if (away) for (const socket of sockets) socket.destroy()
    },
    setDelay: (ms) => void (delayMs = ms),
    get accepted() {
      return accepted
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/**
 * Does one thing after the other, each as late as `delayMs` says when it comes, at once as long as that is 0 and
 * nothing waits.
 */
function inOrder(delayMs: () => number): (act: () => void) => void {
  let waiting = 0
  let last = Promise.resolve()
  return (act) => {
    const ms = delayMs()
    if (ms === 0 && waiting === 0) return act()
    waiting++
    const due = new Promise((resolve) => setTimeout(resolve, ms))
    last = last.then(async () => {
      await due
      waiting--
      act()
    })
  }
}
