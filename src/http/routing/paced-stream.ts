/** One of the places for files that are being sent. */
export interface SendingPlace {
  /** Fires when another application needs it more. */
  lost: AbortSignal
  release(): void
}

/**
 * An iterable as a response body: reads only on demand, and releases its source when the client disconnects or reads
 * nothing for `idleMs`.
 *
 * @param place what the stream holds: it ends when its signal fires, and gives it back
 */
export function pacedStream(
  source: AsyncIterable<Uint8Array>,
  idleMs: number,
  place?: SendingPlace,
): ReadableStream<Uint8Array> {
  const iterator = source[Symbol.asyncIterator]()
  let timer: NodeJS.Timeout | undefined
  const release = async () => {
    clearTimeout(timer)
    place?.release()
    await iterator.return?.()
  }
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        place?.lost.addEventListener('abort', () => {
          controller.error(place.lost.reason)
          release().catch(() => {})
        })
      },
      async pull(controller) {
        clearTimeout(timer)
        try {
          const { done, value } = await iterator.next()
          if (place?.lost.aborted) return
          if (done) {
            place?.release()
            return controller.close()
          }
          controller.enqueue(value)
        } catch (error) {
          place?.release()
          return controller.error(error)
        }
        timer = setTimeout(() => {
          controller.error(new Error('The client stopped reading.'))
          release().catch(() => {})
        }, idleMs)
      },
      cancel: release,
    },
    { highWaterMark: 0 },
  )
}
