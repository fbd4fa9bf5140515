/**
 * An iterable as a response body: reads only on demand, and releases its source when the client disconnects or reads
 * nothing for `idleMs`.
 */
export function pacedStream(source: AsyncIterable<Uint8Array>, idleMs: number): ReadableStream<Uint8Array> {
  const iterator = source[Symbol.asyncIterator]()
  let timer: NodeJS.Timeout | undefined
  const release = async () => {
    clearTimeout(timer)
    await iterator.return?.()
  }
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        clearTimeout(timer)
        try {
          const { done, value } = await iterator.next()
          if (done) return controller.close()
          controller.enqueue(value)
        } catch (error) {
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
