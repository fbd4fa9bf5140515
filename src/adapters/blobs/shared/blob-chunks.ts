import { StemworkError } from '../../../core/engine/errors.js'
import type { BlobSource } from '../../../core/engine/ports/blob-store.js'

/**
 * Yields the bytes of a source: the chunks of a stream as they come, a buffer or a text (as UTF-8) in one piece.
 *
 * @throws StemworkError `INVALID_PARAMS` for any other source, or a stream of other values.
 */
export function blobChunks(source: BlobSource): AsyncIterable<Uint8Array> {
  if (typeof source === 'string' || source instanceof Uint8Array) return whole(bytesOf(source))
  if (typeof (source as Partial<AsyncIterable<unknown>> | null)?.[Symbol.asyncIterator] !== 'function')
    throw noBytes(source)
  return {
    // Not a generator: that would pass on the end of a broken put only once a hanging source has given its next chunk.
    [Symbol.asyncIterator]() {
      const chunks = source[Symbol.asyncIterator]()
      const close = async () => (await chunks.return?.()) ?? { done: true as const, value: undefined }
      return {
        async next() {
          const { done, value } = await chunks.next()
          if (done) return { done: true, value: undefined }
          try {
            return { done: false, value: bytesOf(value) }
          } catch (error) {
            await close()
            throw error
          }
        },
        return: close,
      }
    },
  }
}

async function* whole(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, void> {
  if (bytes.byteLength > 0) yield bytes
}

function bytesOf(chunk: unknown): Uint8Array {
  if (chunk instanceof Uint8Array) return chunk
  if (typeof chunk === 'string') return Buffer.from(chunk)
  throw noBytes(chunk)
}

function noBytes(value: unknown): StemworkError {
  const what =
    value === null ? 'null' : typeof value === 'object' ? `an object of ${value.constructor?.name}` : typeof value
  return new StemworkError(
    'INVALID_PARAMS',
    `The content of a blob must be a byte stream, a Buffer or a string, but is ${what}. For a Blob or File, pass ` +
      'its stream().',
  )
}
