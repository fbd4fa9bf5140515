import { randomUUID } from 'node:crypto'
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { Problem, problemAnswer, type ProblemCode } from '../routing/problem.js'

/** Why the parser of `node:http` closed a connection. */
const parserRefusals: Record<string, [ProblemCode, string]> = {
  HPE_HEADER_OVERFLOW: [
    'HEADERS_TOO_LARGE',
    'The address and the headers of the request are too large. Send fewer or shorter ones.',
  ],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [
    'TOO_LARGE',
    'The chunk extensions of the request are too long. Send the chunks without extensions.',
  ],
  ERR_HTTP_REQUEST_TIMEOUT: [
    'TIMEOUT',
    'The request headers did not arrive in time. Send the request again over a steady connection.',
  ],
}

/**
 * Sends the same JSON as for other errors when `node:http` itself refuses a request.
 *
 * @param lastResponse the last one of a connection: while it is in progress, a second would be taken for a part of it
 */
export function answerBrokenRequests(
  server: Server,
  lastResponse: (socket: Duplex) => ServerResponse | undefined,
): void {
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (!socket.writable || lastResponse(socket)?.writableFinished === false) return void socket.destroy()
    const [code, message] = parserRefusals[error.code ?? ''] ?? [
      'BAD_INPUT',
      'The request is not valid HTTP/1.1. Send it with an HTTP/1.1 client.',
    ]
    const { status, headers, body } = answerOf(new Problem(code, message))
    const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    socket.end(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head.join('')}\r\n${typeof body === 'string' ? body : ''}`,
      () => socket.destroy(),
    )
  })
  server.on('checkExpectation', (_request: IncomingMessage, response: ServerResponse) =>
    refuse(
      response,
      new Problem(
        'EXPECTATION_FAILED',
        'The service supports no expectations except 100-continue. Leave the Expect header out.',
      ),
    ),
  )
}

/** RFC 9112, section 3.2: an HTTP/1.1 request must have a Host header. */
export function lacksHost({ headers, httpVersion }: IncomingMessage): boolean {
  return headers.host === undefined && httpVersion === '1.1'
}

export function missingHost(): Problem {
  return new Problem('BAD_INPUT', 'The request has no Host header, which HTTP/1.1 requires. Send it.')
}

export function refuse(response: ServerResponse, problem: Problem): void {
  const { status, headers, body } = answerOf(problem)
  response.writeHead(status, headers).end(body)
}

function answerOf(problem: Problem) {
  const answer = problemAnswer(problem, { accept: null, requestId: randomUUID() })
  return { ...answer, headers: { ...answer.headers, connection: 'close' } }
}
