/** The clock of `liveDeadline`. */
export interface Clock {
  /** Milliseconds from any moment on. */
  now(): number
  /** Resolves after this many milliseconds, or never once the signal has fired. */
  wait(milliseconds: number, signal: AbortSignal): Promise<void>
}

const systemClock: Clock = {
  now: () => performance.now(),
  wait: (milliseconds, signal) =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds)
      signal.addEventListener('abort', () => clearTimeout(timer))
    }),
}

/**
 * Decides which estimates are too late for a listener of a live stream. Each wait delays the stream, and the audio that
 * follows reduces the delay by its own length; so sources that can wait, such as a file, and sources that cannot are
 * treated alike.
 *
 * @param slackMs longest delay of the stream
 */
export function liveDeadline(slackMs: number, clock = systemClock) {
  let lagMs = 0
  return {
    /** Must be called when this much of the stream has arrived. */
    advance(audioMs: number): void {
      lagMs = Math.max(0, lagMs - audioMs)
    },

    /** Waits for the work; false if it is not done in time. Rejects as the work does. */
    async isMet(work: Promise<unknown>): Promise<boolean> {
      const startedAt = clock.now()
      const timer = new AbortController()
      try {
        return await Promise.race([
          work.then(() => true),
          clock.wait(Math.max(0, slackMs - lagMs), timer.signal).then(() => false),
        ])
      } finally {
        timer.abort()
        lagMs += clock.now() - startedAt
      }
    },
  }
}
