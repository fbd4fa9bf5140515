import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ServerHttp2Stream } from 'node:http2'
import { Readable } from 'node:stream'
import { sendNodeResponse } from 'srvx/node'
import { defaultLogger } from '../../core/engine/ports/logger.js'
import type { ApiAnswer } from '../routing/answer.js'
import type { PacedBody } from '../routing/paced-stream.js'
import { Problem } from '../routing/problem.js'
import { refuse } from './broken-request.js'
import { checkHandler, type Handler, plainAnswerOf } from './mountable.js'
import { NodeRequestReader } from './node-request.js'

/** Place of the mount in a framework. */
export interface MountPoint {
  /** Start of the path that belongs to the host. */
  mountPath?: string
  /** The request's whole URL, if the framework has cut something off `request.url`. */
  originalUrl?: string
  /** The body as a body parser of the framework has left it. Default: `request.body`. */
  parsedBody?: unknown
}

/**
 * Locates the mount for a framework that sees the request's URL as `url`, and the mount at `path` in it. The part of
 * `originalUrl` before `url` was cut off by routers and belongs to the links. Any other URL was rewritten by the host.
 */
export function mountPointOf(originalUrl: string, url: string, path: string): MountPoint {
  // Of "/v1" and "/v1?a=b", frameworks leave "/" and "/?a=b".
  const whole = [originalUrl, originalUrl.replace(/(?=\?)|$/, '/')].find((given) => given.endsWith(url))
  if (whole === undefined) return { mountPath: path, originalUrl: url }
  return { mountPath: whole.slice(0, whole.length - url.length) + path, originalUrl }
}

/**
 * Answers a `node:http` request. Resolves when the response is handed over or the client has disconnected; never
 * rejects.
 */
export type Responder = (request: IncomingMessage, response: ServerResponse, mountPoint?: MountPoint) => Promise<void>

/**
 * Most requests of an HTTP/1.1 connection in progress at a time. Common clients send one at a time; node:http reads at
 * once all the thousands that a client has sent, which would block the event loop for seconds. Each takes 20 kB while
 * it waits, and up to 60 kB with its headers.
 */
const mostPipelined = 5
/** Key of their number on the socket. */
const inProgress = Symbol('requests in progress')
type Counted = IncomingMessage['socket'] & { [inProgress]?: number }
/** Most concurrent streams of an HTTP/2 connection. */
const mostStreams = 100
const limited = new WeakSet<object>()

/** Web requests and responses are created only if needed: for streams and the host's own handlers. */
export function responder(handler: Handler): Responder {
  checkHandler(handler)
  const requests = new NodeRequestReader()
  const plainAnswer = plainAnswerOf(handler)
  return async (request, response, { mountPath, originalUrl, parsedBody } = {}) => {
    limitStreams(request)
    const end = begin(request, response)
    if (!end) return
    try {
      const bodyRead = hasBody(request) && (request.readableEnded || Readable.isDisturbed(request))
      const context = { mountPath, bodyRead, parsedBody: bodyRead ? (parsedBody ?? bodyOf(request)) : undefined }
      const incoming = requests.read(request, response, originalUrl)
      if (plainAnswer) {
        const streaming = send(response, await plainAnswer(incoming, context), request.httpVersionMajor > 1)
        if (streaming) await streaming
      } else {
        const answer = await handler(incoming.web, context)
        if (request.httpVersionMajor > 1) answer.headers.delete('connection')
        await sendNodeResponse(response, answer)
      }
    } catch (error) {
      answerFailure(request, response, error)
    } finally {
      end()
    }
  }
}

/** Returns what to call when the response is handed over; `undefined` if the connection has too many requests. */
function begin(request: IncomingMessage, response: ServerResponse): (() => void) | undefined {
  // With HTTP/2, all streams have this socket, and their limit is another one. An aborted request may have none.
  const socket: Counted | null | undefined = request.httpVersionMajor === 1 ? request.socket : undefined
  if (!socket) return () => {}
  const ahead = socket[inProgress] ?? 0
  if (ahead >= mostPipelined) return void socket.destroy()
  socket[inProgress] = ahead + 1
  const onGone = () => endQueued(response)
  // Behind another response of its connection, it has no socket yet.
  const isQueued = response.socket === null
  if (isQueued && socket.destroyed) onGone()
  else if (isQueued) socket.once('close', onGone)
  return () => {
    if (socket[inProgress]) socket[inProgress]--
    if (isQueued) socket.off('close', onGone)
  }
}

/** When a connection ends, node:http tells only the first response of those in progress. */
function endQueued(response: ServerResponse): void {
  if (response.socket !== null || response.writableFinished) return
  response.destroy()
  response.emit('close')
}

/** HTTP/2 itself does not bound concurrent requests. Excess requests are refused, and may be sent again. */
function limitStreams({ stream }: IncomingMessage & { stream?: ServerHttp2Stream }): void {
  const session = stream?.session
  if (!session || limited.has(session)) return
  limited.add(session)
  if ((session.localSettings.maxConcurrentStreams ?? Infinity) > mostStreams)
    session.settings({ maxConcurrentStreams: mostStreams })
}

/** Our handler answers its own failures. What remains is a broken connection, or a failed handler of the host. */
function answerFailure(request: IncomingMessage, response: ServerResponse, error: unknown): void {
  if (response.headersSent || response.destroyed || request.destroyed) return void response.destroy()
  defaultLogger.error(
    { method: request.method, err: error },
    'The handler of a mount failed; it must answer, or return a Response.',
  )
  const message = 'The service failed. Try again; if it fails again, tell the operator when it happened.'
  try {
    refuse(response, new Problem('INTERNAL_ERROR', message))
  } catch {
    // Middleware of the host may have replaced methods of the response.
    response.destroy()
  }
}

/** Returns a promise only if there is a stream to send. */
function send(response: ServerResponse, answer: ApiAnswer, isHttp2: boolean): Promise<void> | undefined {
  const { status, headers, body } = answer
  // HTTP/2 forbids the header; it closes streams, not connections.
  if (isHttp2) delete headers.connection
  if (!response.headersSent) response.writeHead(status, headers)
  if (body !== null && typeof body === 'object' && 'source' in body) return sendPaced(response, body)
  // In one piece, which avoids a second chunk and the delay of a `write` before the `end`.
  if (body === null) response.end()
  else if (typeof body !== 'string') response.end(body)
  else response.end(body, isAscii(body, headers) ? 'latin1' : 'utf8')
  return undefined
}

/** Uses no web stream, which would take 5 kB more for each of thousands of event streams. */
async function sendPaced(response: ServerResponse, body: PacedBody): Promise<void> {
  const { source, idleMs, reusesMemory, slot } = body
  const iterator = source[Symbol.asyncIterator]()
  // With an error, so that a truncated body does not look complete over HTTP/2.
  const stop = () => response.destroy(slot?.lost.reason as Error)
  const release = () => {
    slot?.release()
    iterator.return?.().catch(() => {})
  }
  slot?.lost.addEventListener('abort', stop)
  response.on('close', release).on('error', release)
  if (response.destroyed) release()
  // Compressing middleware replaces `write` with its own, which ignores the callback.
  const tellsWhenSent = !Object.hasOwn(response, 'write')
  const drained = drainOf(response, idleMs)
  try {
    for (let next = await iterator.next(); !next.done && !response.destroyed; next = await iterator.next())
      if (reusesMemory && tellsWhenSent) await sent(response, next.value, idleMs)
      else if (!response.write(reusesMemory ? Buffer.from(next.value) : next.value)) await drained()
    if (!response.destroyed) response.end()
  } catch (error) {
    body.onFailure?.(error)
    response.destroy(error instanceof Error ? error : undefined)
  } finally {
    slot?.lost.removeEventListener('abort', stop)
    slot?.release()
  }
}

/**
 * Returns a function that waits until the client has read, or is gone: after `idleMs`, it counts as gone. Listens once
 * for the whole response, because compressing middleware never removes a listener.
 */
function drainOf(response: ServerResponse, idleMs: number): () => Promise<void> {
  let wake = () => {}
  response.on('drain', () => wake())
  return () => doneOrClosed(response, idleMs, (done) => (wake = done))
}

/** Resolves when the bytes are sent and their memory may be reused, or the client is gone. */
function sent(response: ServerResponse, bytes: Uint8Array, idleMs: number): Promise<void> {
  return doneOrClosed(response, idleMs, (done) => response.write(bytes, done))
}

function doneOrClosed(response: ServerResponse, idleMs: number, begin: (done: () => void) => void): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => response.destroy(new Error('The client stopped reading.')), idleMs)
    const done = () => {
      clearTimeout(timer)
      response.off('close', done)
      resolve()
    }
    response.on('close', done)
    begin(done)
  })
}

/** As many bytes as characters: the text is ASCII, and Latin-1 encoding is faster. */
function isAscii(body: string, headers: ApiAnswer['headers']): boolean {
  return headers['content-length'] === String(body.length)
}

/** Express, connect and the Pages Router of Next.js keep the parsed body here. */
function bodyOf(request: IncomingMessage & { body?: unknown }): unknown {
  return request.body
}

function hasBody(request: IncomingMessage): boolean {
  return request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length'] ?? 0) > 0
}
