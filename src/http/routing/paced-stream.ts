import type { LoopTurns } from './loop-turns.js'

/** A slot for a body that is being sent or received. */
export interface TransferSlot {
  /** Fires when another application needs it more. */
  lost: AbortSignal
  release(): void
}

/** A response body that is read on demand, and closed when the client disconnects or reads nothing for `idleMs`. */
export interface PacedBody {
  source: AsyncIterable<Uint8Array>
  idleMs: number
  /** Whether a chunk's memory is overwritten once the next chunk is requested. */
  reusesMemory?: boolean
  /** The slot of the body, which ends early if the slot is lost, and releases it at its end. */
  slot?: TransferSlot
  /** Called with the error of a source that fails. */
  onFailure?(error: unknown): void
}

export function pacedStream({ source, idleMs, reusesMemory, slot, onFailure }: PacedBody): ReadableStream<Uint8Array> {
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
          onFailure?.(error)
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
 * Yields the chunks of a body, each in its application's turn. Not a generator: closing one that was never started
 * would leave the body open.
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
      // Waits before reading, not after: chunks that wait for their turn would fill the memory.
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
