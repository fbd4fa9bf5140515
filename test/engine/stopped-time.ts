import { syncBuiltinESMExports } from 'node:module'
import promises from 'node:timers/promises'
import { vi } from 'vitest'

const realDelay = promises.setTimeout

/**
 * From now on no timer fires and no clock moves except by `vi.advanceTimersByTimeAsync`. Sockets and files work by
 * themselves.
 */
export function stopTime(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'] })
  // vitest leaves `node:timers/promises` as it is, which the build imports by name.
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
