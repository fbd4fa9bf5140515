import { FastResponse } from 'srvx/node'
import { type PacedBody, pacedStream } from './paced-stream.js'
import type { WebSocketConnection } from './web-socket-connection.js'

/** The response of a route. A plain object, so that common headers can be added cheaply. */
export interface ApiAnswer {
  status: number
  /** Names in lower case. */
  headers: Record<string, string>
  body: string | Uint8Array | PacedBody | null
  /** Takes over the connection instead, if the request asked to upgrade it to a WebSocket. */
  upgrade?(connection: WebSocketConnection): void
}

/** Like `ApiAnswer`, or with a large body in the pieces that are sent: joined, it would take its memory twice. */
export type RouteAnswer = Omit<ApiAnswer, 'body'> & { body: ApiAnswer['body'] | readonly Uint8Array[] }

/**
 * A JSON response. Its length is known, so it needs no chunking; it must not be cached, because its links are
 * credentials.
 */
export function json(value: unknown, facts: { status?: number; headers?: Record<string, string> } = {}): ApiAnswer {
  return jsonOf(JSON.stringify(value), facts)
}

/** Like `json`, for a value that is JSON already. */
export function jsonOf<Body extends string | Uint8Array | readonly Uint8Array[]>(
  body: Body,
  { status = 200, headers }: { status?: number; headers?: Record<string, string> } = {},
): RouteAnswer & { body: Body } {
  const own = {
    'content-type': 'application/json',
    'content-length': String(bytesIn(body)),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  }
  return { status, headers: headers ? { ...own, ...headers } : own, body }
}

/** A text response, for example a page or Prometheus metrics. */
export function text(body: string, contentType: string, headers: Record<string, string> = {}): ApiAnswer {
  return {
    status: 200,
    headers: { 'content-type': contentType, 'content-length': String(Buffer.byteLength(body)), ...headers },
    body,
  }
}

export function empty(status: number, headers: Record<string, string> = {}): ApiAnswer {
  return { status, headers, body: null }
}

/**
 * A web response that the Node bridge can send without building its web parts, which would cost more than everything
 * else.
 */
export function toResponse({ status, headers, body }: ApiAnswer): Response {
  return new FastResponse(webBody(body), { status, headers })
}

function webBody(body: ApiAnswer['body']) {
  const isPaced = body !== null && typeof body === 'object' && 'source' in body
  return isPaced ? pacedStream(body) : (body as string | Uint8Array<ArrayBuffer> | null)
}

function bytesIn(body: string | Uint8Array | readonly Uint8Array[]): number {
  return body instanceof Array ? body.reduce((sum, { byteLength }) => sum + byteLength, 0) : Buffer.byteLength(body)
}
