import { setImmediate } from 'node:timers/promises'
import type { ApiRequest } from './api-request.js'
import { Problem } from './problem.js'

interface BodyLimits {
  idleMs: number
  minBytesPerSecond: number
}

/** Smaller chunks take more time than their bytes are worth. */
const smallChunk = 4096

/** Most bytes read of a body that no route expects: clients with a small one, as with DELETE, keep their connection. */
const strayBytes = 1024 ** 2

/**
 * The bytes of a request, read once. Stopping early leaves the connection open for the response; cancelling the stream
 * would close it.
 */
export class RequestBody {
  readonly #request: ApiRequest
  readonly #bodyRead: boolean
  readonly #parsedBody: unknown
  readonly #limits: BodyLimits
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  #isOpen = false
  #ended = false
  /** Whether the client has disconnected or stalls. */
  #failed = false
  #bytes = 0
  /** Announced bytes of the whole body; NaN if the client announces none. */
  #announced = NaN
  /** Whether the last chunk was small. */
  #isSmall = false
  /** Time spent waiting for the client; a slow store does not count. */
  #waitedMs = 0

  /** @param read whether the host's framework has read the body before, and the result */
  constructor(request: ApiRequest, read: { bodyRead: boolean; parsedBody?: unknown }, limits: BodyLimits) {
    this.#request = request
    this.#bodyRead = read.bodyRead
    this.#parsedBody = read.bodyRead ? read.parsedBody : undefined
    this.#limits = limits
  }

  /** The JSON body as parsed by the host's body parser; `undefined` if there is none. */
  get parsed(): object | undefined {
    const value = this.#parsedBody
    return typeof value === 'object' && value !== null && !(value instanceof Uint8Array) ? value : undefined
  }

  /**
   * Waits at most `limits.idleMs` for each chunk, and gives up on a client that trickles.
   *
   * @throws Problem `TIMEOUT`; `INTERNAL_ERROR` if other code has read the body before; the signal's reason.
   */
  async *chunks(signal?: AbortSignal): AsyncGenerator<Uint8Array, void, undefined> {
    const bytes = this.#parsedBody
    if (typeof bytes === 'string' || bytes instanceof Uint8Array) {
      yield Buffer.from(bytes as Uint8Array)
      return
    }
    this.#open()
    const next = () => this.#next(Infinity, signal)
    for (let chunk = await next(); chunk; chunk = await next()) yield chunk
  }

  /** Like `chunks`, for a file. @throws Problem also `INTERNAL_ERROR` if a parser has turned it into other bytes */
  fileChunks(signal?: AbortSignal): AsyncGenerator<Uint8Array, void, undefined> {
    const read = this.#parsedBody
    if (typeof read === 'string' || read instanceof Uint8Array) {
      const { headers } = this.#request
      const isComparable = headers.has('content-length') && !headers.has('content-encoding')
      const hasOtherLength = isComparable && Number(headers.get('content-length')) !== Buffer.byteLength(read)
      // Bytes that are no text were replaced by this character, of three bytes.
      if (hasOtherLength || (typeof read === 'string' && read.includes('\ufffd'))) throw bodyMadeText()
    }
    return this.chunks(signal)
  }

  /**
   * Reads and discards up to the end or `maxBytes`: a client that is still sending would not see the response. Never
   * throws. Returns whether the end was reached.
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
      // The client has disconnected or stalls; nothing more to do.
    }
    return false
  }

  /** Whether the client may have sent, or be sending, bytes that were not read. */
  get mayHaveRest(): boolean {
    if (this.#bodyRead || this.#ended) return false
    const { headers } = this.#request
    if (!headers.has('transfer-encoding') && (headers.get('content-length') ?? '0') === '0') return false
    // If the host began to read it, the host has to finish.
    return this.#isOpen || !(this.#request.bodyUsed || this.#request.body?.locked)
  }

  /**
   * Reads a bounded rest of an unused body within `limits.idleMs` in total. False: there is more, and the connection
   * must be closed after the response, or the server would keep reading.
   */
  async settle(): Promise<boolean> {
    // Bodies of GET and HEAD have no meaning and are not exposed.
    if (!this.#request.body) return false
    return this.discard(strayBytes, this.#limits.idleMs)
  }

  #open(): void {
    if (this.#isOpen) return
    const { body, bodyUsed } = this.#request
    if (this.#bodyRead || bodyUsed || body?.locked) throw bodyAlreadyRead()
    this.#isOpen = true
    this.#announced = Number(this.#request.headers.get('content-length') ?? NaN)
    this.#reader = body?.getReader()
  }

  async #next(maxMs: number, signal?: AbortSignal): Promise<Uint8Array | undefined> {
    if (this.#failed) throw stalledBody()
    if (!this.#reader || this.#ended) return undefined
    signal?.throwIfAborted()
    // A client may send thousands of one-byte chunks, which would block the event loop; after a pause, node:http
    // returns all bytes received meanwhile at once.
    if (this.#isSmall && this.#bytes !== this.#announced) await setImmediate()
    const { idleMs, minBytesPerSecond } = this.#limits
    // The total time for a client grows with the bytes that it has sent.
    const patienceMs = idleMs + (this.#bytes / minBytesPerSecond) * 1000 - this.#waitedMs
    const startedAt = performance.now()
    let timer: NodeJS.Timeout | undefined
    let onAbort = () => {}
    const stalled = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(stalledBody()), Math.min(idleMs, patienceMs, maxMs))
      onAbort = () => reject(signal?.reason)
    })
    signal?.addEventListener('abort', onAbort)
    try {
      const { done, value } = await Promise.race([this.#reader.read(), stalled])
      this.#waitedMs += performance.now() - startedAt
      if (!done) {
        this.#bytes += value.byteLength
        this.#isSmall = value.byteLength < smallChunk
        return value
      }
      this.#ended = true
      return undefined
    } catch (error) {
      this.#failed = true
      throw error
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
    }
  }
}

function bodyAlreadyRead(): Problem {
  return new Problem(
    'INTERNAL_ERROR',
    'The request body was read before it reached the service, and it is not in request.body. Mount the service ' +
      'before your body parser, or exclude its path from that parser.',
  )
}

function bodyMadeText(): Problem {
  return new Problem(
    'INTERNAL_ERROR',
    'A body parser made a text of the file before it reached the service, and changed its bytes. Mount the service ' +
      'before your body parser, or exclude its path from that parser.',
  )
}

function stalledBody(): Problem {
  const message = 'The request body arrived too slowly or not at all. Send the request again over a steady connection.'
  return new Problem('TIMEOUT', message, { headers: { connection: 'close' } })
}
