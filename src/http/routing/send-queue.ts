import { Shares } from '../../core/engine/limits/shares.js'

/** Chunks of files and frames that are handled in one pass of the event loop; each takes a fraction of a millisecond. */
const chunksPerPass = 2

/** Divides the time of the event loop among applications whose files and events are being sent. */
export class SendQueue {
  readonly #shares = new Shares({ total: chunksPerPass, reserve: 0 })

  /**
   * Resolves when the application may send its next chunk.
   *
   * @throws the signal's reason if it fires before
   */
  async next(app: string, signal?: AbortSignal): Promise<void> {
    const share = await this.#shares.take(app, signal)
    setImmediate(() => share?.release())
  }

  /**
   * The chunks of a body, each when it is its application's turn. Not a generator: one that was never started would
   * leave the body open when it is closed.
   */
  paced(app: string, body: AsyncIterable<Uint8Array>): AsyncIterableIterator<Uint8Array> {
    const chunks = body[Symbol.asyncIterator]()
    const paced: AsyncIterableIterator<Uint8Array> = {
      [Symbol.asyncIterator]: () => paced,
      next: async () => {
        // Not after reading: what waits for its turn would fill the memory.
        await this.next(app)
        return await chunks.next()
      },
      return: async () => (await chunks.return?.()) ?? { done: true, value: undefined },
    }
    return paced
  }
}
