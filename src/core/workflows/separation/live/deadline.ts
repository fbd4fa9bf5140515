/** What `liveDeadline` tells the time by. */
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
 * Decides what is too late for somebody who listens to a stream while it is made. Each wait delays the stream, and the
 * audio that follows makes up for it by its own length; so a source that can wait, such as a file, and one that cannot
 * are treated alike.
 *
 * @param slackMs by which the stream may be delayed
 */
export function liveDeadline(slackMs: number, clock = systemClock) {
  let lagMs = 0
  return {
    /** Call when this much of the stream has come. */
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
