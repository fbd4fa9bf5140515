import { syncBuiltinESMExports } from 'node:module'
import promises from 'node:timers/promises'
import { vi } from 'vitest'

const realDelay = promises.setTimeout

/**
 * Stops time: timers fire and clocks move only by `vi.advanceTimersByTimeAsync`. Sockets and files continue to
 * work.
 */
export function stopTime(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'] })
  // vitest does not fake `node:timers/promises`, which the build imports by name.
  setDelay(
    (ms, value, { signal } = {}) =>
      new Promise((resolve, reject) => {
        setTimeout(() => resolve(value as never), ms)
        signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
      }),
  )
}

export function resumeTime(): void {
  vi.useRealTimers()
  setDelay(realDelay)
}

function setDelay(delay: typeof realDelay): void {
  promises.setTimeout = delay
  syncBuiltinESMExports()
}
