import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { sendNodeResponse } from 'srvx/node'
import { defaultLogger } from '../../core/engine/ports/logger.js'
import { type ApiAnswer, toResponse } from '../routing/answer.js'
import { Problem } from '../routing/problem.js'
import { refuse } from './broken-request.js'
import { checkHandler, type Handler, plainAnswerOf } from './mountable.js'
import { NodeRequestReader } from './node-request.js'

/** Where a framework has put the mount. */
export interface MountPoint {
  /** Start of the path that belongs to the host. */
  mountPath?: string
  /** The request's whole URL, if the framework has cut something off `request.url`. */
  originalUrl?: string
  /** Where the framework keeps what a body parser has made of the body. Default: `request.body`. */
  parsedBody?: unknown
}

/**
 * Answers a `node:http` request. Resolves when the response is handed over or the client has disconnected; never
 * rejects.
 */
export type Responder = (request: IncomingMessage, response: ServerResponse, mountPoint?: MountPoint) => Promise<void>

/** Web requests and responses are created only if needed: for streams and the host's own handlers. */
export function responder(handler: Handler): Responder {
  checkHandler(handler)
  const requests = new NodeRequestReader()
  const plainAnswer = plainAnswerOf(handler)
  return async (request, response, { mountPath, originalUrl, parsedBody } = {}) => {
    try {
      const bodyRead = hasBody(request) && (request.readableEnded || Readable.isDisturbed(request))
      const context = { mountPath, bodyRead, parsedBody: bodyRead ? (parsedBody ?? bodyOf(request)) : undefined }
      const asked = requests.read(request, response, originalUrl)
      if (plainAnswer) {
        const streaming = send(response, await plainAnswer(asked, context), request.httpVersionMajor > 1)
        if (streaming) await streaming
        return
      }
      const answer = await handler(asked.web, context)
      if (request.httpVersionMajor > 1) answer.headers.delete('connection')
      await sendNodeResponse(response, answer)
    } catch (error) {
      // Our handler answers its own failures. What remains is a broken connection, or a failed handler of the host.
      if (response.headersSent || response.destroyed || request.destroyed) return void response.destroy()
      defaultLogger.error(
        { method: request.method, err: error },
        'The handler of a mount failed; it must answer, or return a Response.',
      )
      refuse(
        response,
        new Problem(
          'INTERNAL_ERROR',
          'The service failed. Try again; if it fails again, tell the operator when it happened.',
        ),
      )
    }
  }
}

/** Writing more takes milliseconds, during which no other request is served. */
const pieceBytes = 64 * 1024

/** Returns at once unless there is a stream or a large text to send. */
function send(response: ServerResponse, answer: ApiAnswer, isHttp2: boolean): Promise<void> | undefined {
  const { status, headers, body } = answer
  // HTTP/2 forbids the header; it closes streams, not connections.
  if (isHttp2) delete headers.connection
  if (body !== null && typeof body !== 'string') return sendNodeResponse(response, toResponse(answer))
  if (!response.headersSent) response.writeHead(status, headers)
  // In one piece, which avoids a second chunk and the delay of a `write` before the `end`.
  if (body === null) response.end()
  else if (body.length > pieceBytes) return sendInPieces(response, Buffer.from(body))
  else response.end(body, isAscii(body, headers) ? 'latin1' : 'utf8')
  return undefined
}

async function sendInPieces(response: ServerResponse, body: Buffer): Promise<void> {
  for (let start = 0; start < body.byteLength; start += pieceBytes) {
    if (response.destroyed) return
    const taken = response.write(body.subarray(start, start + pieceBytes))
    await (taken ? setImmediate() : drained(response))
  }
  response.end()
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off('drain', done)
      response.off('close', done)
      resolve()
    }
    response.on('drain', done)
    response.on('close', done)
  })
}

/** As many bytes as characters: the text is ASCII, and Latin-1 encoding is faster. */
function isAscii(body: string, headers: ApiAnswer['headers']): boolean {
  return headers['content-length'] === String(body.length)
}

/** Express, connect and the pages of Next.js keep it there. */
function bodyOf(request: IncomingMessage & { body?: unknown }): unknown {
  return request.body
}

function hasBody(request: IncomingMessage): boolean {
  return request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length'] ?? 0) > 0
}
