import type { IncomingMessage } from 'node:http'

/** Bytes of chunk framing that any body may have; beyond them, framing may be a fifth of all bytes sent. */
const mostFraming = 64 * 1024

/**
 * The bytes of a body, unless it is mostly framing: node:http takes as long for a chunk of one byte as for one of many.
 *
 * @param refusal what to throw for such a body
 */
export async function* withoutTinyChunks(
  message: IncomingMessage,
  refusal: () => Error,
): AsyncGenerator<Uint8Array, void, undefined> {
  const { socket, headers } = message
  if (headers['transfer-encoding'] === undefined) return yield* message
  const receivedBefore = socket.bytesRead
  let bytes = 0
  for await (const chunk of message as AsyncIterable<Uint8Array>) {
    yield chunk
    bytes += chunk.byteLength
    const framing = socket.bytesRead - receivedBefore - bytes - message.readableLength
    if (framing > mostFraming && framing > bytes / 4) throw refusal()
  }
}
