import type { Call } from './call.js'
import { Problem } from './problem.js'

/**
 * The bytes of a request, read once. Stopping early leaves the connection open, so that an answer can still be sent; cancelling
 * the stream would close it under the client.
 */
export class RequestBody {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  readonly #limits: { idleMs: number; minBytesPerSecond: number }
  #ended = false
  #bytes = 0
  /** Time spent on waiting for the client; a slow store does not count against it. */
  #waitedMs = 0

  /** @throws Problem `INTERNAL_ERROR` if the host's framework has read the body before. */
  constructor(call: Call) {
    const { request, service } = call
    this.#limits = service.options.limits
    if (call.bodyRead || request.bodyUsed || request.body?.locked) throw bodyAlreadyRead()
    this.#reader = request.body?.getReader()
  }

  /** Waits at most `limits.idleMs` for each chunk, and ends a client that trickles. @throws Problem `TIMEOUT`. */
  async *chunks(): AsyncGenerator<Uint8Array, void, undefined> {
    for (let chunk = await this.#next(); chunk; chunk = await this.#next()) yield chunk
  }

  /**
   * Reads on and throws away, until the end or `maxBytes`: a client that is still sending would not see an answer before.
   * Never throws.
   */
  async discard(maxBytes: number): Promise<void> {
    try {
      for (let rest = maxBytes; rest > 0;) {
        const chunk = await this.#next()
        if (!chunk) return
        rest -= chunk.byteLength
      }
    } catch {
      // The client is gone or stalls; there is nothing left to be polite to.
    }
  }

  async #next(): Promise<Uint8Array | undefined> {
    if (!this.#reader || this.#ended) return undefined
    const { idleMs, minBytesPerSecond } = this.#limits
    // What a client may wait in all grows with what it has sent.
    const patienceMs = idleMs + (this.#bytes / minBytesPerSecond) * 1000 - this.#waitedMs
    const startedAt = performance.now()
    let timer: NodeJS.Timeout | undefined
    const stalled = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(stalledBody()), Math.min(idleMs, patienceMs))
    })
    try {
      const { done, value } = await Promise.race([this.#reader.read(), stalled])
      this.#waitedMs += performance.now() - startedAt
      if (!done) {
        this.#bytes += value.byteLength
        return value
      }
      this.#ended = true
      return undefined
    } catch (error) {
      this.#ended = true
      throw error
    } finally {
      clearTimeout(timer)
    }
  }
}

function bodyAlreadyRead(): Problem {
  return new Problem(
    'INTERNAL_ERROR',
    'The request body was read before it reached the service. Mount the service before your body parser (express.json(), koa-bodyparser and the like), or keep that parser off its path.',
  )
}

function stalledBody(): Problem {
  return new Problem(
    'TIMEOUT',
    'The request body came too slowly or not at all. Send the request again over a steady connection.',
    { headers: { connection: 'close' } },
  )
}
