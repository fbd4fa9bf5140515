import { isWhole, sizeOf, type TransferOptions, type UploadSource } from './upload-source.js'

/**
 * A request body that reports its progress.
 *
 * @param onFailure gets an error of the source or of `onProgress`, which `fetch` would report as a network failure
 */
export function streamedBody(
  source: UploadSource,
  { onProgress, signal }: TransferOptions,
  onFailure: (error: unknown) => void,
): RequestInit {
  const totalBytes = isWhole(source) ? sizeOf(source) : undefined
  const iterator = counted(chunksIn(source), (bytes) => onProgress?.({ bytes, totalBytes }))
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      // Node's fetch would read an aborted body to its end.
      if (signal?.aborted) await iterator.return(undefined)
      signal?.throwIfAborted()
      try {
        const { done, value } = await iterator.next()
        if (done) controller.close()
        else controller.enqueue(value)
      } catch (error) {
        onFailure(error)
        throw error
      }
    },
    cancel: async () => void (await iterator.return(undefined)),
  })
  const streamed: RequestInit & { duplex: 'half' } = { body, duplex: 'half' }
  return streamed
}

function chunksIn(source: UploadSource): AsyncIterable<Uint8Array> | Iterable<Uint8Array> {
  if (source instanceof Uint8Array) return [source]
  if (source instanceof Blob) return chunksOf(source.stream())
  if (typeof source === 'object' && source !== null) {
    if ('getReader' in source) return chunksOf(source)
    if (Symbol.asyncIterator in source || Symbol.iterator in source) return source
  }
  throw wrongSource(source, 'For a path, pass await fs.openAsBlob(path); for an ArrayBuffer, new Uint8Array(buffer).')
}

function wrongSource(given: unknown, advice: string): TypeError {
  const what = Object.prototype.toString.call(given).slice(8, -1)
  return new TypeError(`An upload needs a Blob, a Uint8Array or a stream of these bytes, not ${what}. ${advice}`)
}

async function* counted(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  onBytes: (bytes: number) => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  let bytes = 0
  for await (const chunk of chunks) {
    // By name: `instanceof` fails for bytes of another realm, such as a test's.
    if (chunk?.[Symbol.toStringTag] !== 'Uint8Array') throw wrongSource(chunk, 'Read the stream without an encoding.')
    for (const piece of pieces(chunk)) {
      yield piece
      bytes += piece.byteLength
      onBytes(bytes)
    }
  }
}

const pieceBytes = 64 * 1024

/** A source may return everything at once, which would make progress a single step. */
function* pieces(source: Uint8Array): Generator<Uint8Array, void, undefined> {
  for (let at = 0; at < source.byteLength; at += pieceBytes) yield source.subarray(at, at + pieceBytes)
}

/** Streams are not iterable in every browser. */
async function* chunksOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = stream.getReader()
  let isDone = false
  try {
    for (;;) {
      const { done, value } = await reader.read()
      isDone = done
      if (done) return
      yield value
    }
  } finally {
    if (!isDone) await reader.cancel().catch(() => undefined)
  }
}
