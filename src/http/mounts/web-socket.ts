import { type IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { type Answer, type Handler, mountPathOf, plainAnswerOf, traitsOf } from './mountable.js'
import type { WebSocketConnection } from '../routing/web-socket-connection.js'
import { NodeRequestReader } from './node-request.js'

interface WebSocketLibrary {
  WebSocketServer: new (options: {
    noServer: true
    maxPayload: number
    perMessageDeflate: false
    allowSynchronousEvents: false
  }) => {
    handleUpgrade(
      request: IncomingMessage,
      socket: Duplex,
      head: Buffer,
      opened: (connection: WebSocketConnection) => void,
    ): void
  }
}

/** `node:http` since Node 24.9. */
type AskingServer = Server & { shouldUpgradeCallback?: (request: IncomingMessage) => boolean }

/** Clients split longer runs of samples into several messages. */
const mostMessageBytes = 1024 * 1024

/** By server: its handlers with WebSockets, and the connections that became WebSockets. */
const upgradesOf = new WeakMap<Server, { upgrades: Upgrade[]; sockets: Set<Duplex> }>()

/**
 * Lets requests of a `node:http` server become WebSockets, if the handler has any. `serve` does so itself; on a server
 * with other mounts, call it once for each handler. Requests for none of their routes are left to the host's own
 * listeners of the event `upgrade`, if there are any.
 *
 * @param options.path where the handler is mounted, for example `/v1`
 * @returns the connections that became WebSockets, which the server does not close by itself
 * @throws StemworkError `INVALID_OPTIONS` for an impossible path.
 */
export function acceptUpgrades(server: Server, handler: Handler, options: { path?: string } = {}): ReadonlySet<Duplex> {
  const context = { mountPath: mountPathOf(options) }
  const answer = plainAnswerOf(handler)
  if (!answer || !traitsOf(handler).takesUpgrades) return new Set()
  const upgrade = upgrader((request) => answer(request, context))
  const known = upgradesOf.get(server)
  if (known) {
    known.upgrades.push(upgrade)
    return known.sockets
  }
  const own = { upgrades: [upgrade], sockets: new Set<Duplex>() }
  upgradesOf.set(server, own)
  listenForUpgrades(server, own)
  return own.sockets
}

/** One listener for all handlers, so that any other listener is known to be the host's. */
function listenForUpgrades(server: Server, { upgrades, sockets }: { upgrades: Upgrade[]; sockets: Set<Duplex> }): void {
  const isShared = () => server.listenerCount('upgrade') > 1
  answerWithoutUpgrade(server, (request) => !asksForWebSocket(request) && !isShared())
  server.on('upgrade', (request, socket, head) => {
    if (asksForWebSocket(request)) {
      sockets.add(socket)
      socket.once('close', () => sockets.delete(socket)).on('error', () => socket.destroy())
      void upgradeByFirst(upgrades, (upgrade, isLast) => upgrade(request, socket, head, !isLast || isShared()))
    } else if (!isShared()) handBack(server, request, socket, head)
  })
}

async function upgradeByFirst(
  upgrades: readonly Upgrade[],
  attempt: (one: Upgrade, isLast: boolean) => Promise<boolean>,
) {
  for (const one of upgrades) if (await attempt(one, one === upgrades.at(-1))) return
}

function asksForWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket'
}

/**
 * Lets the server answer these requests as if they had asked for no other protocol, which HTTP always allows: clients
 * such as Java's ask for HTTP/2 with each request. Since Node 24.9 a server can be told to; from Node 26 on, the socket
 * of such a request gives no bytes before its body was read, so it could not be handed back.
 */
function answerWithoutUpgrade(server: AskingServer, applies: (request: IncomingMessage) => boolean): void {
  const accepts = server.shouldUpgradeCallback
  if (accepts) server.shouldUpgradeCallback = (request) => !applies(request) && accepts.call(server, request)
}

/** Hands such a request back as a new connection, for older versions of Node. */
function handBack(server: Server, { method, url, rawHeaders }: IncomingMessage, socket: Duplex, head: Buffer): void {
  const lines = [`${method} ${url} HTTP/1.1`]
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const [name, value] = rawHeaders.slice(at, at + 2)
    if (!/^(connection|upgrade)$/i.test(name ?? '')) lines.push(`${name}: ${value}`)
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]))
  server.emit('encrypted' in socket ? 'secureConnection' : 'connection', socket)
}

/**
 * Opens a WebSocket if the answer is one, or else sends the answer. Never rejects; resolves to false for an address
 * that the handler does not have, if it may decline.
 */
type Upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer, mayDecline: boolean) => Promise<boolean>

function upgrader(answer: (request: Parameters<Answer>[0]) => ReturnType<Answer>): Upgrade {
  const requests = new NodeRequestReader()
  const library = 'ws'
  const server = (import(library) as Promise<WebSocketLibrary>).then(
    ({ WebSocketServer }) =>
      new WebSocketServer({
        noServer: true,
        maxPayload: mostMessageBytes,
        perMessageDeflate: false,
        // One message per pass of the event loop: a client may send thousands of one-byte messages.
        allowSynchronousEvents: false,
      }),
  )
  // A missing library was reported when the handler was made.
  server.catch(() => undefined)
  return async (request, socket, head, mayDecline) => {
    try {
      const response = new ServerResponse(request)
      const incoming = Object.assign(requests.read(request, response, undefined), { isUpgrade: true })
      const { status, headers, body, upgrade } = await answer(incoming)
      if (status === 404 && mayDecline) return false
      if (upgrade) (await server).handleUpgrade(request, socket, head, upgrade)
      else {
        response.assignSocket(socket as Parameters<ServerResponse['assignSocket']>[0])
        // A client may leave its side open forever.
        response.once('finish', () => socket.end(() => socket.destroy()))
        response.writeHead(status, { ...headers, connection: 'close' })
        response.end(typeof body === 'string' ? body : undefined)
      }
    } catch {
      socket.destroy()
    }
    return true
  }
}
