import type { WorkProgress } from '../ports/runner.js'
import type { Stage } from '../workflow/workflow.js'

/**
 * Turns the progress within a stage into the progress of the whole run, by the stages' weights. Reports only what is news and
 * never less than before; fractions outside 0..1 are clamped.
 */
export function stageProgress(stages: readonly Stage[], onProgress: (progress: WorkProgress) => void) {
  const weights = stages.map(({ weight }) => weight ?? 1)
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  const starts = weights.map((_, index) => weights.slice(0, index).reduce((sum, weight) => sum + weight, 0))
  let highest = 0
  let last: WorkProgress | undefined

  return {
    report(index: number, fraction: number): void {
      const within = Number.isNaN(fraction) ? 0 : Math.min(1, Math.max(0, fraction))
      highest = Math.min(1, Math.max(highest, (starts[index] + weights[index] * within) / total))
      const stage = stages[index].name
      if (last?.stage === stage && last.progress === highest) return
      last = { stage, progress: highest }
      onProgress(last)
    },
  }
}
