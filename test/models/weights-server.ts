import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

export interface WeightsServer {
  /** Address without a trailing slash. */
  url: string
  files: Map<string, Buffer>
  requests: { path: string; range: string | undefined; ifRange: string | undefined; sent: number }[]
  /** Bytes after which each of the next answers is cut off, in order. */
  cuts: number[]
  /** Statuses of the next answers, which replace the file. */
  statuses: number[]
  /** Bytes after which answers stall without ending. */
  hold?: number
  /** Handling of ranges: correct, ignored, or without naming the version that is sent. */
  ranges: 'kept' | 'ignored' | 'unversioned'
  close(): void
}

/** A real web server with files, entity tags and ranges, which can break off. Closed after the test. */
export async function weightsServer(files: Record<string, Buffer> = {}): Promise<WeightsServer> {
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '').slice(1)
    const content = own.files.get(path)
    const entry = {
      path,
      range: request.headers.range,
      ifRange: request.headers['if-range'] as string | undefined,
      sent: 0,
    }
    own.requests.push(entry)
    const status = own.statuses.shift()
    if (status !== undefined || !content) return void response.writeHead(status ?? 404).end()
    const tag = `"${createHash('sha256').update(content).digest('hex').slice(0, 16)}"`
    const from = own.ranges === 'ignored' ? 0 : rangeStart(request, own.ranges === 'kept' ? tag : undefined)
    if (from > 0 && from >= content.length) return void response.writeHead(416).end()
    const body = content.subarray(from)
    response.writeHead(from > 0 ? 206 : 200, {
      'content-length': body.length,
      ...(own.ranges === 'kept' ? { etag: tag } : {}),
      ...(from > 0 ? { 'content-range': `bytes ${from}-${content.length - 1}/${content.length}` } : {}),
    })
    const cut = own.cuts.shift()
    entry.sent = Math.min(cut ?? Infinity, body.length)
    if (own.hold !== undefined) return void response.write(body.subarray(0, own.hold))
    if (cut === undefined || cut >= body.length) return void response.end(body)
    response.write(body.subarray(0, cut), () => setImmediate(() => response.destroy()))
  })
  const own: WeightsServer = {
    url: '',
    files: new Map(Object.entries(files)),
    requests: [],
    cuts: [],
    statuses: [],
    ranges: 'kept',
    close: () => (server.close(), server.closeAllConnections()),
  }
  onTestFinished(own.close)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  own.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return own
}

function rangeStart({ headers }: IncomingMessage, tag: string | undefined): number {
  if (tag !== undefined && headers['if-range'] !== undefined && headers['if-range'] !== tag) return 0
  return Number(/^bytes=(\d+)-$/.exec(headers.range ?? '')?.[1] ?? 0)
}
