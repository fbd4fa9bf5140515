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

/** More samples come in several messages. */
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
    upgraded.add(socket)
    socket.once('close', () => upgraded.delete(socket))
    upgrade(request, socket, head)
  })
  return upgraded
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
        // One message in a pass of the event loop: a client may send thousands of one byte.
        allowSynchronousEvents: false,
      }),
  )
  // Said when the handler is made.
  server.catch(() => undefined)
  return (request, socket, head) => {
    socket.on('error', () => socket.destroy())
    const response = new ServerResponse(request)
    const isUpgrade = request.headers.upgrade?.toLowerCase() === 'websocket'
    const asked = Object.assign(requests.read(request, response, undefined), { isUpgrade })
    const open = async () => {
      const { status, headers, body, upgrade } = await answer(asked, {})
      if (upgrade) return (await server).handleUpgrade(request, socket, head, upgrade)
      response.assignSocket(socket as Parameters<ServerResponse['assignSocket']>[0])
      response.once('finish', () => socket.end())
      response.writeHead(status, { ...headers, connection: 'close' })
      response.end(typeof body === 'string' ? body : undefined)
    }
    open().catch(() => socket.destroy())
  }
}
