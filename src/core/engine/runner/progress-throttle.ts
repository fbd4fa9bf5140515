import type { WorkProgress } from '../ports/runner.js'

/**
 * Sends each new stage at once and, within a stage, at most one progress per `intervalMs`, always the latest. `flush`
 * sends a pending one.
 */
export function throttleProgress(send: (progress: WorkProgress) => void, intervalMs: number) {
  let held: WorkProgress | undefined
  let lastAt = -Infinity
  let lastStage: string | undefined
  let timer: NodeJS.Timeout | undefined

  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    if (!held) return
    const progress = held
    held = undefined
    lastAt = performance.now()
    lastStage = progress.stage
    send(progress)
  }

  return {
    flush,
    push(progress: WorkProgress): void {
      held = progress
      const waitMs = lastAt + intervalMs - performance.now()
      // Due progress is sent now, not by a timer, because a stage may block the thread for seconds.
      if (waitMs <= 0 || progress.stage !== lastStage) flush()
      else timer ??= setTimeout(flush, waitMs)
    },
  }
}
