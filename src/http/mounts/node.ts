import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Handler } from './mountable.js'
import { responder } from './node-bridge.js'

/**
 * The handler as a `node:http` request listener. `path` is the front of the paths that the host sends to it.
 *
 * @example
 * http.createServer(listener(createHandler(engine), { path: '/v1' })).listen(8080)
 */
export function listener(
  handler: Handler,
  options: { path?: string } = {},
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  const mountPath = (options.path ?? '').replace(/\/+$/, '')
  const respond = responder(handler)
  const mountPoint = { mountPath }
  return (request, response) => respond(request, response, mountPoint)
}

export interface ServeOptions {
  /** 0 takes a free one. Default: 8080. */
  port?: number
  /** Default: `127.0.0.1`. */
  host?: string
  /** For `node:http`, for example `headersTimeout`. */
  server?: ServerOptions
}

export interface RunningServer {
  readonly server: Server
  readonly host: string
  readonly port: number
  /** Origin at which it answers, without a slash at the end. */
  readonly origin: string
  /** Takes no new connection and ends when the running answers are sent, at the latest after `timeoutMs` (default 5,000). */
  close(options?: { timeoutMs?: number }): Promise<void>
}

/**
 * Starts a `node:http` server of its own for the handler.
 *
 * @throws the server's error if it cannot listen.
 */
export async function serve(handler: Handler, options: ServeOptions = {}): Promise<RunningServer> {
  const host = options.host ?? '127.0.0.1'
  // Node's limit on a whole request would cut long uploads off; the handler has limits on idle time instead.
  // A keep-alive time above that of common load balancers (60 s) lets them, not us, end idle connections.
  const server = createServer({ requestTimeout: 0, keepAliveTimeout: 65_000, ...options.server }, listener(handler))
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
        const force = setTimeout(() => server.closeAllConnections(), timeoutMs)
        server.close(() => {
          clearTimeout(force)
          resolve()
        })
        server.closeIdleConnections()
      }),
  }
}
