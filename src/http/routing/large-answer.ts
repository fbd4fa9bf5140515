import type { ApiAnswer, RouteAnswer } from './answer.js'
import type { Service } from './call.js'
import { paced } from './paced-stream.js'

/** Writing more at once takes milliseconds, during which no other request is served. */
const pieceBytes = 64 * 1024

/**
 * Sends a large answer in pieces, each in its application's turn, and stops when the client stops reading.
 *
 * @param app the owner of the key or link; without one, the answer needs no slot
 * @throws Problem `RATE_LIMITED` if too many answers of the application are being sent
 */
export function inPieces(answer: RouteAnswer, { largeAnswers, options, turns }: Service, app = ''): ApiAnswer {
  const pieces = piecesOf(answer.body)
  const [first] = pieces
  if (!first) return answer as ApiAnswer
  if (pieces.length === 1) return { ...answer, body: first }
  // Pages and documents are the same bytes for all; others take memory until their client has read them.
  const slot = app === '' ? undefined : largeAnswers.take(app)
  return { ...answer, body: { source: paced(turns, app, each(pieces)), idleMs: options.limits.idleMs, slot } }
}

/** Empty for a body that is small or is a stream. */
function piecesOf(body: RouteAnswer['body']): Uint8Array[] {
  if (body instanceof Array) return [...body]
  if (body === null || (typeof body === 'object' && 'source' in body) || body.length <= pieceBytes) return []
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  const pieces: Uint8Array[] = []
  for (let at = 0; at < bytes.byteLength; at += pieceBytes) pieces.push(bytes.subarray(at, at + pieceBytes))
  return pieces
}

/** Drops each piece once it was sent, to free its memory. */
async function* each(pieces: Uint8Array[]): AsyncGenerator<Uint8Array> {
  for (let piece = pieces.shift(); piece; piece = pieces.shift()) yield piece
}
