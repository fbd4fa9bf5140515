import type { ApiRequest } from './api-request.js'
import { Problem } from './problem.js'

interface BodyLimits {
  idleMs: number
  minBytesPerSecond: number
}

/** Of a body that nobody asked for. Clients that send a small one along, for example with DELETE, keep their connection. */
const strayBytes = 1024 ** 2

/**
 * The bytes of a request, read once. Stopping early leaves the connection open, so that an answer can still be sent; cancelling
 * the stream would close it under the client.
 */
export class RequestBody {
  readonly #request: ApiRequest
  readonly #bodyRead: boolean
  readonly #parsedBody: unknown
  readonly #limits: BodyLimits
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  #isOpen = false
  #ended = false
  /** The client is gone or stalls. */
  #failed = false
  #bytes = 0
  /** Time spent on waiting for the client; a slow store does not count against it. */
  #waitedMs = 0

  /** @param read whether the host's framework has read the body before, and what it made of it */
  constructor(request: ApiRequest, read: { bodyRead: boolean; parsedBody?: unknown }, limits: BodyLimits) {
    this.#request = request
    this.#bodyRead = read.bodyRead
    this.#parsedBody = read.bodyRead ? read.parsedBody : undefined
    this.#limits = limits
  }

  /** The value that a body parser of the host has made of a JSON body; `undefined` if there is none. */
  get parsed(): object | undefined {
    const value = this.#parsedBody
    return typeof value === 'object' && value !== null && !(value instanceof Uint8Array) ? value : undefined
  }

  /**
   * Waits at most `limits.idleMs` for each chunk, and ends a client that trickles.
   *
   * @throws Problem `TIMEOUT`; `INTERNAL_ERROR` if somebody else has read the body before.
   */
  async *chunks(): AsyncGenerator<Uint8Array, void, undefined> {
    const bytes = this.#parsedBody
    if (typeof bytes === 'string' || bytes instanceof Uint8Array) {
      yield Buffer.from(bytes as Uint8Array)
      return
    }
    this.#open()
    for (let chunk = await this.#next(); chunk; chunk = await this.#next()) yield chunk
  }

  /**
   * Reads on and throws away, until the end or `maxBytes`: a client that is still sending would not see an answer before.
   * Never throws. Tells whether the end was reached.
   */
  async discard(maxBytes: number, maxMs = Infinity): Promise<boolean> {
    const startedAt = performance.now()
    try {
      this.#open()
      for (let rest = maxBytes; rest > 0;) {
        const leftMs = maxMs - (performance.now() - startedAt)
        if (leftMs <= 0) return false
        const chunk = await this.#next(leftMs)
        if (!chunk) return true
        rest -= chunk.byteLength
      }
    } catch {
      // The client is gone or stalls; there is nothing left to be polite to.
    }
    return false
  }

  /** Whether the client may have sent something, or be sending it, that was not read. */
  get mayHaveRest(): boolean {
    if (this.#bodyRead || this.#ended) return false
    const { headers } = this.#request
    if (!headers.has('transfer-encoding') && (headers.get('content-length') ?? '0') === '0') return false
    // What the host has begun to read is the host's to finish.
    return this.#isOpen || !(this.#request.bodyUsed || this.#request.body?.locked)
  }

  /**
   * Reads a bounded rest of a body that the answer does not depend on, within `limits.idleMs` in all. False: there is more, and the
   * connection must be closed after the answer, or the server would read on without end.
   */
  async settle(): Promise<boolean> {
    // Bodies of GET and HEAD mean nothing and are not given out.
    if (!this.#request.body) return false
    return this.discard(strayBytes, this.#limits.idleMs)
  }

  #open(): void {
    if (this.#isOpen) return
    const { body, bodyUsed } = this.#request
    if (this.#bodyRead || bodyUsed || body?.locked) throw bodyAlreadyRead()
    this.#isOpen = true
    this.#reader = body?.getReader()
  }

  async #next(maxMs = Infinity): Promise<Uint8Array | undefined> {
    if (this.#failed) throw stalledBody()
    if (!this.#reader || this.#ended) return undefined
    const { idleMs, minBytesPerSecond } = this.#limits
    // What a client may wait in all grows with what it has sent.
    const patienceMs = idleMs + (this.#bytes / minBytesPerSecond) * 1000 - this.#waitedMs
    const startedAt = performance.now()
    let timer: NodeJS.Timeout | undefined
    const stalled = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(stalledBody()), Math.min(idleMs, patienceMs, maxMs))
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
      this.#failed = true
      throw error
    } finally {
      clearTimeout(timer)
    }
  }
}

function bodyAlreadyRead(): Problem {
  return new Problem(
    'INTERNAL_ERROR',
    'The request body was read before it reached the service, and it is not in request.body. Mount the service before your body parser, or exclude its path from that parser.',
  )
}

function stalledBody(): Problem {
  return new Problem(
    'TIMEOUT',
    'The request body came too slowly or not at all. Send the request again over a steady connection.',
    { headers: { connection: 'close' } },
  )
}
