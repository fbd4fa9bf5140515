/** A time limit that can be paused and resumed. */
export function runTimeLimit(limitMs: number, onEnd: () => void) {
  let leftMs = limitMs
  let startedAt: number | undefined
  let timer: NodeJS.Timeout | undefined
  return {
    start(): void {
      if (startedAt !== undefined) return
      startedAt = performance.now()
      timer = setTimeout(onEnd, Math.max(0, leftMs)).unref()
    },

    pause(): void {
      if (startedAt === undefined) return
      clearTimeout(timer)
      leftMs -= performance.now() - startedAt
      startedAt = undefined
    },
  }
}
