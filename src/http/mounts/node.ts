import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { longestTimerMs } from '../../core/engine/workflow/policy.js'
import { shareConnections } from './connections-per-address.js'
import { answerBrokenRequests, lacksHost, missingHost, refuse } from './broken-request.js'
import { foreignName, isLoopback } from './local-host.js'
import { type Handler, mountPathOf, traitsOf } from './mountable.js'
import { responder } from './node-bridge.js'
import { serveDefaults } from './serve-defaults.js'
import { acceptUpgrades } from './web-socket.js'

export { acceptUpgrades }

/**
 * The handler as a `node:http` request listener. `path` is the start of the paths that the host sends to it.
 *
 * @example
 * http.createServer(listener(createHandler(engine), { path: '/v1' })).listen(8080)
 */
export function listener(
  handler: Handler,
  options: { path?: string } = {},
): (request: IncomingMessage, response: ServerResponse) => unknown {
  const mountPath = mountPathOf(options)
  const respond = responder(handler)
  const mountPoint = { mountPath }
  // h3, the server of Nuxt and Nitro, waits for the returned promise, and answers itself if there is none.
  return (request, response) => respond(request, response, mountPoint)
}

export interface ServeOptions {
  /** 0: any free port. Default: 8080. */
  port?: number
  /** Default: `127.0.0.1`. */
  host?: string
  /** Simultaneous connections. A further one replaces a connection without a request. Default: 1000. */
  maxConnections?: number
  /**
   * Simultaneous connections of one address (IPv6: of a 64-bit network). Default: three quarters of `maxConnections`.
   * Behind a proxy, which is one address, set it to `maxConnections`.
   */
  maxConnectionsPerAddress?: number
  /** How long a connection may take to send the head of a request, the first one included. Default: 60 s. */
  headersTimeoutMs?: number
  /** Connections without data in either direction for this long are closed. Default: 120 s; 0: never. */
  idleTimeoutMs?: number
  /** For `node:http`, for example `maxHeaderSize`. */
  server?: ServerOptions
}

export interface RunningServer {
  readonly server: Server
  readonly host: string
  readonly port: number
  /** Origin at which it answers, without a slash at the end. */
  readonly origin: string
  /**
   * Stops accepting connections and resolves when current responses are sent, at the latest after `timeoutMs` (default
   * 5,000).
   */
  close(options?: { timeoutMs?: number }): Promise<void>
}

/** How often a closing server looks for connections that have become idle. */
const idleCheckMs = 100

/**
 * Starts a new `node:http` server for the handler.
 *
 * @throws the server's error if it cannot listen.
 */
export async function serve(handler: Handler, options: ServeOptions = {}): Promise<RunningServer> {
  const host = options.host ?? '127.0.0.1'
  const { maxConnections, headersTimeoutMs, idleTimeoutMs } = { ...serveDefaults, ...options }
  const server = createServer({
    // Node's limit for a whole request would cut off long uploads; the handler limits idle time and transfer rate
    // instead. By default, Node would also apply this 0 to the time for the headers.
    requestTimeout: 0,
    headersTimeout: headersTimeoutMs,
    connectionsCheckingInterval: Math.min(30_000, Math.ceil(headersTimeoutMs / 2)),
    // Longer than that of common load balancers (60 s), so that they close idle connections first.
    keepAliveTimeout: 65_000,
    // Node's own response has no message.
    requireHostHeader: false,
    ...options.server,
  })
  server.setTimeout(idleTimeoutMs)
  const respond = listener(handler)
  const keyless = isLoopback(host) ? traitsOf(handler).keyless : undefined
  const upgraded = acceptUpgrades(server, handler)
  const perAddress = options.maxConnectionsPerAddress ?? Math.ceil(maxConnections * 0.75)
  const { onRequest, lastResponse } = shareConnections(server, { total: maxConnections, perAddress, upgraded })
  answerBrokenRequests(server, lastResponse)
  server.on('request', (request, response) => {
    onRequest(response)
    const refusal = lacksHost(request) ? missingHost() : keyless && foreignName(request.headers.host, keyless)
    if (refusal) refuse(response, refusal)
    else void respond(request, response)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port ?? 8080, host, resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    server,
    host,
    port,
    origin: `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
    close: ({ timeoutMs = 5000 } = {}) =>
      new Promise((resolve) => {
        const force = setTimeout(() => server.closeAllConnections(), Math.min(timeoutMs, longestTimerMs))
        // Connections whose requests end meanwhile would be kept alive.
        const idle = setInterval(() => server.closeIdleConnections(), idleCheckMs)
        server.close(() => {
          clearTimeout(force)
          clearInterval(idle)
          resolve()
        })
        server.closeIdleConnections()
        for (const socket of upgraded) socket.destroy()
      }),
  }
}
