import type { Readable } from 'node:stream'
import { abortable } from '../shared/abortable-source.js'
import { unavailable } from './s3-failure.js'

/** Most connections in a row that may break without delivering a byte. */
const maxFailures = 3

/**
 * Yields the bytes `start` to `end` (inclusive) of an object, from a stream that begins at `start`. A connection that
 * breaks, or delivers nothing for `idleTimeoutMs`, is replaced by a new one that continues there. Missing bytes at the
 * end are an error, never a short file.
 *
 * @param reopen opens a stream of the same version of the object from `position` on; throws if that version is gone.
 */
export function objectBody(
  first: Readable,
  range: { start: number; end: number },
  reopen: (position: number) => Promise<Readable>,
  { signal, idleTimeoutMs }: { signal?: AbortSignal; idleTimeoutMs: number },
): AsyncIterable<Uint8Array> {
  let stream = first
  let isEnded = false

  async function* bytes(): AsyncGenerator<Uint8Array, void, void> {
    let position = range.start
    for (let failures = 0; ;) {
      let timer = whenIdle(stream)
      try {
        for await (const chunk of stream as AsyncIterable<Uint8Array>) {
          clearTimeout(timer)
          position += chunk.byteLength
          failures = 0
          yield chunk
          timer = whenIdle(stream)
        }
        if (position === range.end + 1) return
        throw new Error(`The body ended before byte ${position} of ${range.end + 1}.`)
      } catch (error) {
        if (isEnded || position > range.end || ++failures > maxFailures)
          throw unavailable('The blob could not be read to its end', error)
      } finally {
        clearTimeout(timer)
      }
      stream = await reopen(position)
    }
  }

  return {
    [Symbol.asyncIterator]() {
      const whole = bytes()
      const generator = abortable(
        { [Symbol.asyncIterator]: () => ({ next: () => whole.next(), return: released(whole) }) },
        signal,
      )
      return { next: () => generator.next(), return: released(generator) }
    },
  }

  function whenIdle(idle: Readable): NodeJS.Timeout {
    return setTimeout(() => idle.destroy(new Error(`No byte came within ${idleTimeoutMs} ms.`)), idleTimeoutMs)
  }

  function released(generator: AsyncGenerator<Uint8Array, void, void>) {
    return () => {
      // Even if nothing was read yet, and without waiting for a read that hangs: the connection must be released.
      isEnded = true
      stream.destroy()
      return generator.return()
    }
  }
}
