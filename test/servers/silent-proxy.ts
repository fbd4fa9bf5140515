import { connect, createServer, type Socket } from 'node:net'

/**
 * A TCP proxy that disturbs its traffic. Silence is its main fault: connections stay open and received data is
 * acknowledged, but nothing is ever answered.
 */
export interface SilentProxy {
  /** The server's URL, with the proxy's address. */
  url: string
  /**
   * From now on, or after this many more bytes from the server, nothing passes: half-open connections, old and new.
   * Resolves when the first connection has fallen silent.
   */
  silence(afterBytes?: number): Promise<void>
  /** Lets new connections pass again; silenced ones stay silent. */
  speak(): void
  /** Ends all connections at once, like a restart of the server. */
  cut(): void
  /** While true, connections are closed as soon as they are made: the server is down. */
  setAway(isAway: boolean): void
  /** Delays every further piece by this much, in both directions. */
  setDelay(delayMs: number): void
  /** Number of connections opened by clients so far. */
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
      // As behind a dead router: not even the end of the connection passes.
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

/** Runs actions in order, each delayed by `delayMs` at its arrival; at once while the delay is 0 and nothing waits. */
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
