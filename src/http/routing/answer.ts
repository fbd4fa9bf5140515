import { FastResponse } from 'srvx/node'

/** What a route gives back. Plain, so that the headers that every answer has can be added without cost. */
export interface ApiAnswer {
  status: number
  /** Names in lower case. */
  headers: Record<string, string>
  body: string | ReadableStream<Uint8Array> | null
}

/** A JSON answer. Its length is known, so that no bridge has to chunk it; no cache keeps it, for it may hold links that are credentials. */
export function json(value: unknown, facts: { status?: number; headers?: Record<string, string> } = {}): ApiAnswer {
  return jsonOf(JSON.stringify(value), facts)
}

/** The same for a value that is JSON already. */
export function jsonOf(
  body: string,
  { status = 200, headers }: { status?: number; headers?: Record<string, string> } = {},
): ApiAnswer {
  const own = {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  }
  return { status, headers: headers ? { ...own, ...headers } : own, body }
}

/** A text answer, for example a page or Prometheus metrics. */
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

/** As a web response that the Node bridge can send without building the web parts, which would cost more than all the rest. */
export function toResponse({ status, headers, body }: ApiAnswer): Response {
  return new FastResponse(body, { status, headers })
}
