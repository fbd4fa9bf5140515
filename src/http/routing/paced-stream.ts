import type { LoopTurns } from './loop-turns.js'

/** One of the slots for what is being sent or received. */
export interface TransferSlot {
  /** Fires when another application needs it more. */
  lost: AbortSignal
  release(): void
}

/**
 * A response body that is read on demand, and given up when the client disconnects or reads nothing for `idleMs`.
 */
export interface PacedBody {
  source: AsyncIterable<Uint8Array>
  idleMs: number
  /** Whether a chunk's memory is overwritten once the next chunk is requested. */
  reusesMemory?: boolean
  /** The slot that the body holds: it ends the body when it is lost, and is released at the end. */
  slot?: TransferSlot
}

export function pacedStream({ source, idleMs, reusesMemory, slot }: PacedBody): ReadableStream<Uint8Array> {
  const iterator = source[Symbol.asyncIterator]()
  let timer: NodeJS.Timeout | undefined
  const release = async () => {
    clearTimeout(timer)
    slot?.release()
    await iterator.return?.()
  }
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        slot?.lost.addEventListener('abort', () => {
          controller.error(slot.lost.reason)
          release().catch(() => {})
        })
      },
      async pull(controller) {
        clearTimeout(timer)
        try {
          const { done, value } = await iterator.next()
          if (slot?.lost.aborted) return
          if (done) {
            slot?.release()
            return controller.close()
          }
          controller.enqueue(reusesMemory ? new Uint8Array(value) : value)
        } catch (error) {
          slot?.release()
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
