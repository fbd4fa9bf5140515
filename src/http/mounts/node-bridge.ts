import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { sendNodeResponse } from 'srvx/node'
import { type ApiAnswer, toResponse } from '../routing/answer.js'
import { type Handler, plainAnswerOf } from './mountable.js'
import { NodeRequestReader } from './node-request.js'

/** Where a framework has put the mount. */
export interface MountPoint {
  /** Front of the path that belongs to the host. */
  mountPath?: string
  /** The request's whole URL, if the framework has cut something off `request.url`. */
  originalUrl?: string
}

/** Answers a `node:http` request. Resolves when the answer is handed over or the client is gone; never rejects. */
export type Responder = (request: IncomingMessage, response: ServerResponse, mountPoint?: MountPoint) => Promise<void>

/** Web requests and responses are made only for what needs them: streams, and handlers of the host's own. */
export function responder(handler: Handler): Responder {
  const requests = new NodeRequestReader()
  const plainAnswer = plainAnswerOf(handler)
  return async (request, response, { mountPath, originalUrl } = {}) => {
    try {
      const bodyRead = hasBody(request) && (request.readableEnded || Readable.isDisturbed(request))
      const context = { mountPath, bodyRead }
      const asked = requests.read(request, response, originalUrl)
      if (plainAnswer) {
        const streaming = send(response, await plainAnswer(asked, context), request.httpVersionMajor > 1)
        if (streaming) await streaming
        return
      }
      const answer = await handler(asked.web, context)
      if (request.httpVersionMajor > 1) answer.headers.delete('connection')
      await sendNodeResponse(response, answer)
    } catch {
      // The handler answers every failure of its own; what is left is a connection that broke.
      response.destroy()
    }
  }
}

/** Returns at once unless there is a stream to send. */
function send(response: ServerResponse, answer: ApiAnswer, isHttp2: boolean): Promise<void> | undefined {
  const { status, headers, body } = answer
  // HTTP/2 forbids the header; it closes streams, not connections.
  if (isHttp2) delete headers.connection
  if (body !== null && typeof body !== 'string') return sendNodeResponse(response, toResponse(answer))
  if (!response.headersSent) response.writeHead(status, headers)
  // In one piece, which spares a second chunk and the delay of a `write` before the `end`.
  if (body === null) response.end()
  else response.end(body, isAscii(body, headers) ? 'latin1' : 'utf8')
  return undefined
}

/** As many bytes as letters. The bytes are the same in Latin-1 then, which is sent without a look at each letter. */
function isAscii(body: string, headers: ApiAnswer['headers']): boolean {
  return headers['content-length'] === String(body.length)
}

function hasBody(request: IncomingMessage): boolean {
  return request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length'] ?? 0) > 0
}
