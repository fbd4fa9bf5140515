import type { LoopTurns } from './loop-turns.js'

/**
 * The chunks of a body, each when it is its application's turn. Not a generator: one that was never started would leave
 * the body open when it is closed.
 */
export function paced(
  turns: LoopTurns,
  app: string,
  body: AsyncIterable<Uint8Array>,
): AsyncIterableIterator<Uint8Array> {
  const chunks = body[Symbol.asyncIterator]()
  const iterator: AsyncIterableIterator<Uint8Array> = {
    [Symbol.asyncIterator]: () => iterator,
    next: async () => {
      // Not after reading: what waits for its turn would fill the memory.
      const endTurn = await turns.next(app)
      try {
        return await chunks.next()
      } finally {
        endTurn()
      }
    },
    return: async () => (await chunks.return?.()) ?? { done: true, value: undefined },
  }
  return iterator
}
