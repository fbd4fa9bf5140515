import { createServer, request, type ClientRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/**
 * Faults for the next request (or the next to `path`), which is then not forwarded whole and answered. A lost answer is
 * one of a service that has done the work.
 */
export type Mishap = { path?: RegExp } & (
  | { status: number; headers?: Record<string, string>; body?: string }
  | { breaks: 'request' | 'request, unnoticed by the service' | 'before the answer' | 'answer' }
)

export interface Front {
  base: string
  /** Paths of the requests so far. */
  seen: string[]
  dropConnections(): void
  /** The service notices the requests that broke unnoticed. */
  dropRequests(): void
}

/** A proxy in front of the service that causes the given failures, one after another, until the test ends. */
export async function startFront(origin: string, mishaps: Mishap[]): Promise<Front> {
  const seen: string[] = []
  const unnoticed: ClientRequest[] = []
  const server = createServer((incoming, answer) => {
    const path = incoming.url ?? '/'
    seen.push(path)
    const index = mishaps.findIndex((mishap) => !mishap.path || mishap.path.test(path))
    const [mishap] = index >= 0 ? mishaps.splice(index, 1) : []
    if (mishap && 'status' in mishap) return answer.writeHead(mishap.status, mishap.headers).end(mishap.body)
    const onward = pass(origin, incoming, answer, mishap?.breaks)
    if (mishap?.breaks === 'request, unnoticed by the service') unnoticed.push(onward)
    else answer.on('close', () => onward.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const request of unnoticed) request.destroy()
    server.closeAllConnections()
    server.close()
  })
  return {
    base: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    seen,
    dropConnections: () => server.closeAllConnections(),
    dropRequests: () => unnoticed.splice(0).forEach((request) => request.destroy()),
  }
}

function pass(origin: string, incoming: IncomingMessage, answer: ServerResponse, breaks?: string): ClientRequest {
  const onward = request(origin + incoming.url, { method: incoming.method, headers: incoming.headers }, (response) => {
    if (breaks === 'before the answer') {
      response.resume().on('end', () => answer.destroy())
      return
    }
    answer.writeHead(response.statusCode ?? 502, response.headers)
    if (breaks === 'answer') {
      response.once('data', (chunk: Buffer) => answer.write(chunk.subarray(0, -1), () => answer.destroy()))
      return
    }
    response.pipe(answer)
  })
  onward.on('error', () => answer.destroy())
  if (breaks?.startsWith('request'))
    incoming.once('data', (chunk: Buffer) => onward.write(chunk, () => incoming.destroy()))
  else incoming.pipe(onward)
  return onward
}
