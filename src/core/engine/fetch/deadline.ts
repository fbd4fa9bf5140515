/** How long each part of a fetch may take, in milliseconds, and how slow its body may be. */
export interface FetchTimeouts {
  /** Resolving the name, connecting and the TLS handshake. Default: 10,000. */
  connectMs: number
  /** From the sent request to the headers of the response. Default: 30,000. */
  firstByteMs: number
  /** Between two chunks of a body. Default: 30,000. */
  idleMs: number
  /**
   * In bytes per second. A body that arrives more slowly than this for longer than `idleMs` is given up. Default:
   * 8,192.
   */
  minBytesPerSecond: number
  /** Factor by which it has to be faster while others need the slot. Asked again for each chunk. Default: 1. */
  haste: () => number
  /** Everything, redirects included. Default: 1,200,000. */
  totalMs: number
}

export const defaultTimeouts: FetchTimeouts = {
  connectMs: 10_000,
  firstByteMs: 30_000,
  idleMs: 30_000,
  minBytesPerSecond: 8_192,
  haste: () => 1,
  totalMs: 20 * 60_000,
}

/** The server responds, but too slowly: another attempt would take as long. */
export class TooSlowError extends Error {}

/** Others needed the slot more: another attempt may succeed. */
export class CrowdedOutError extends Error {}

/** The one signal that ends a fetch: the caller's abort or the first timeout, whichever comes first. */
export class Deadline {
  readonly #controller = new AbortController()
  readonly #caller: AbortSignal | undefined
  readonly #stopTotal: () => void
  readonly #onAbort = () => this.#controller.abort(this.#caller?.reason)

  constructor(caller: AbortSignal | undefined, totalMs: number) {
    caller?.throwIfAborted()
    this.#caller = caller
    caller?.addEventListener('abort', this.#onAbort, { once: true })
    const end = () => this.#controller.abort(new TooSlowError(`not finished after ${totalMs} ms`))
    const timer = setTimeout(end, totalMs).unref()
    this.#stopTotal = () => clearTimeout(timer)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Ends the fetch unless the returned function is called within `limitMs`. */
  start(limitMs: number, awaited: string): () => void {
    const end = () => this.#controller.abort(new Error(`timed out after ${limitMs} ms waiting for ${awaited}`))
    const timer = setTimeout(end, limitMs).unref()
    return () => clearTimeout(timer)
  }

  /** Stops the clock; the fetch is over. */
  end(): void {
    this.#stopTotal()
    this.#caller?.removeEventListener('abort', this.#onAbort)
  }
}
