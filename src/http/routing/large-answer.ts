import type { ApiAnswer } from './answer.js'
import type { Service } from './call.js'

/** To write more takes milliseconds, during which no other request is served. */
const pieceBytes = 64 * 1024

/**
 * A large answer in pieces, each when it is its application's turn, and given up when the client stops reading.
 *
 * @param app whose key or link it was asked for with
 * @throws Problem `RATE_LIMITED` if too many of the application are being sent
 */
export function inPieces(answer: ApiAnswer, { largeAnswers, options, sendQueue }: Service, app = ''): ApiAnswer {
  const { body } = answer
  if (body === null || (typeof body === 'object' && 'source' in body) || body.length <= pieceBytes) return answer
  const pieces = piecesOf(typeof body === 'string' ? Buffer.from(body) : body)
  // Pages and documents are the same bytes for all; others take memory until their client has read them.
  const slot = app === '' ? undefined : largeAnswers.take(app)
  return { ...answer, body: { source: sendQueue.paced(app, pieces), idleMs: options.limits.idleMs, slot } }
}

async function* piecesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.byteLength; start += pieceBytes) yield bytes.subarray(start, start + pieceBytes)
}
