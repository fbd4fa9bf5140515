import { type IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { type Answer, type Handler, hasWebSockets, plainAnswerOf } from './mountable.js'
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

/** Clients split longer runs of samples into several messages. */
const mostMessageBytes = 1024 * 1024

/**
 * Lets requests of a `node:http` server become WebSockets, if the handler has any. `serve` does it by itself; on a
 * server with another mount it is called once.
 *
 * @returns the connections that did, which the server does not close by itself
 */
export function acceptUpgrades(server: Server, handler: Handler): ReadonlySet<Duplex> {
  const upgraded = new Set<Duplex>()
  const answer = plainAnswerOf(handler)
  if (!answer || !hasWebSockets(handler)) return upgraded
  const upgrade = upgrader(answer)
  server.on('upgrade', (request, socket, head) => {
    if (!asksForWebSocket(request)) return handBack(server, request, socket, head)
    upgraded.add(socket)
    socket.once('close', () => upgraded.delete(socket))
    upgrade(request, socket, head)
  })
  return upgraded
}

function asksForWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket'
}

/**
 * Answers the request as if it had asked for no other protocol, which a server may always do: clients such as Java's
 * ask for HTTP/2 with each request.
 */
function handBack(server: Server, { method, url, rawHeaders }: IncomingMessage, socket: Duplex, head: Buffer): void {
  const lines = [`${method} ${url} HTTP/1.1`]
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const [name, value] = rawHeaders.slice(at, at + 2)
    if (!/^(connection|upgrade)$/i.test(name ?? '')) lines.push(`${name}: ${value}`)
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]))
  server.emit('encrypted' in socket ? 'secureConnection' : 'connection', socket)
}

/** A WebSocket where the answer to the request is one, and the answer itself where it is not. */
function upgrader(answer: Answer): (request: IncomingMessage, socket: Duplex, head: Buffer) => void {
  const requests = new NodeRequestReader()
  const library = 'ws'
  const server = (import(library) as Promise<WebSocketLibrary>).then(
    ({ WebSocketServer }) =>
      new WebSocketServer({
        noServer: true,
        maxPayload: mostMessageBytes,
        perMessageDeflate: false,
        // One message in a pass of the event loop: a client may send thousands of one-byte messages.
        allowSynchronousEvents: false,
      }),
  )
  // A missing library was reported when the handler was made.
  server.catch(() => undefined)
  return (request, socket, head) => {
    socket.on('error', () => socket.destroy())
    const response = new ServerResponse(request)
    const incoming = Object.assign(requests.read(request, response, undefined), { isUpgrade: true })
    const open = async () => {
      const { status, headers, body, upgrade } = await answer(incoming, {})
      if (upgrade) return (await server).handleUpgrade(request, socket, head, upgrade)
      response.assignSocket(socket as Parameters<ServerResponse['assignSocket']>[0])
      // A client may leave its side open for ever.
      response.once('finish', () => socket.end(() => socket.destroy()))
      response.writeHead(status, { ...headers, connection: 'close' })
      response.end(typeof body === 'string' ? body : undefined)
    }
    open().catch(() => socket.destroy())
  }
}
