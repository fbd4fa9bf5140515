/**
 * Yields the chunks of `source` until `signal` fires: then throws the signal's reason at once, even while the source
 * keeps the reader waiting, and closes the source.
 */
export async function* abortable(
  source: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array, void, void> {
  if (!signal) {
    yield* source
    return
  }
  signal.throwIfAborted()
  const iterator = source[Symbol.asyncIterator]()
  // Not Promise.race against one promise of the abort: that promise would hold every chunk of the stream until its end.
  let interrupt = () => {}
  const onAbort = () => interrupt()
  signal.addEventListener('abort', onAbort, { once: true })
  let ended = false
  try {
    for (;;) {
      const result = await new Promise<IteratorResult<Uint8Array>>((resolve, reject) => {
        interrupt = () => reject(signal.reason as Error)
        if (signal.aborted) interrupt()
        else iterator.next().then(resolve, reject)
      })
      ended = result.done === true
      if (result.done) return
      yield result.value
    }
  } catch (error) {
    ended = !signal.aborted
    throw error
  } finally {
    signal.removeEventListener('abort', onAbort)
    // Not awaited: a source that hangs in next() would not answer return() either.
    if (!ended) void Promise.resolve(iterator.return?.()).catch(() => {})
  }
}
