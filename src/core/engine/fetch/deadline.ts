/** How long each part of a fetch may take, in milliseconds, and how slow its body may be. */
export interface FetchTimeouts {
  /** For the name resolution, the connection and the TLS handshake. Default: 10,000. */
  connectMs: number
  /** From the sent request to the headers of the response. Default: 30,000. */
  firstByteMs: number
  /** Between two chunks of a body. Default: 30,000. */
  idleMs: number
  /** In bytes per second. The fetch fails if the body arrives more slowly for longer than `idleMs`. Default: 8,192. */
  minBytesPerSecond: number
  /** Factor by which the body must be faster while others need the slot. Called for each chunk. Default: 1. */
  haste: () => number
  /** For the whole fetch, including redirects. Default: 1,200,000. */
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

/** The server responds, but too slowly, or with hardly anything but framing: another attempt would go the same way. */
export class TooSlowError extends Error {}

/** The fetch was too slow while others needed the slot: another attempt may succeed. */
export class CrowdedOutError extends Error {}

export interface Deadline {
  signal: AbortSignal
  /** Ends the fetch unless the returned function is called within `limitMs`. */
  start(limitMs: number, awaited: string): () => void
  /** Stops the clock when the fetch has ended. */
  end(): void
}

/** Combines the caller's abort and the timeouts of a fetch into one signal, which fires at the first of them. */
export function startDeadline(caller: AbortSignal | undefined, totalMs: number): Deadline {
  caller?.throwIfAborted()
  const controller = new AbortController()
  const onAbort = () => controller.abort(caller?.reason)
  caller?.addEventListener('abort', onAbort, { once: true })
  /** @returns a function that stops the clock */
  const abortAfter = (limitMs: number, reason: () => Error) => {
    const timer = setTimeout(() => controller.abort(reason()), limitMs).unref()
    return () => clearTimeout(timer)
  }
  const stopTotal = abortAfter(totalMs, () => new TooSlowError(`not finished after ${totalMs} ms`))
  return {
    signal: controller.signal,
    start: (limitMs, awaited) =>
      abortAfter(limitMs, () => new Error(`timed out after ${limitMs} ms waiting for ${awaited}`)),
    end() {
      stopTotal()
      caller?.removeEventListener('abort', onAbort)
    },
  }
}
