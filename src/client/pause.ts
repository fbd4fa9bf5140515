/** Resolves after `ms`. @throws the signal's reason when it fires first */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const onAbort = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}

/** Exponential back-off with jitter: half to all of `firstMs` doubled `attempt` times, at most `longestMs`. */
export function backOff(attempt: number, { firstMs, longestMs }: { firstMs: number; longestMs: number }): number {
  return Math.min(longestMs, firstMs * 2 ** attempt) * (0.5 + Math.random() / 2)
}
