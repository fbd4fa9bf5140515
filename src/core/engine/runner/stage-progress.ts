import type { WorkProgress } from '../ports/runner.js'
import type { Stage } from '../workflow/workflow.js'

/**
 * Converts the progress within a stage to that of the whole run, by the stages' weights. Never reports a decrease or an
 * earlier stage; clamps fractions to 0..1.
 */
export function stageProgress(stages: readonly Stage[], onProgress: (progress: WorkProgress) => void) {
  let total = 0
  const shares = stages.map(({ name, weight = 1 }) => ({ name, weight, start: (total += weight) - weight }))
  let highest = 0
  let current = 0
  let last: WorkProgress | undefined

  return {
    report(index: number, fraction: number): void {
      const share = shares[index]
      if (!share) throw new RangeError(`stage ${index} of ${stages.length} has no progress`)
      // A stage may leave work running that reports after the next stage has begun.
      if (index < current) return
      current = index
      const within = Number.isNaN(fraction) ? 0 : Math.min(1, Math.max(0, fraction))
      highest = Math.min(1, Math.max(highest, (share.start + share.weight * within) / total))
      if (last?.stage === share.name && last.progress === highest) return
      last = { stage: share.name, progress: highest }
      onProgress(last)
    },
  }
}
