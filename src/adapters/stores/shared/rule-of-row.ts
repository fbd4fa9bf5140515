import { type SchedulingRule, schedulingRuleSchema } from '../../../core/engine/job/scheduling.js'

/** A rule as a row of a table keeps it: what it applies to, its state and limit. */
export function ruleOfRow(kind: unknown, id: unknown, state: unknown, maxRunning: unknown): SchedulingRule {
  return schedulingRuleSchema.parse({
    target: kind === 'deployment' ? { kind } : { kind, id },
    state,
    maxRunning: maxRunning === null ? null : Number(maxRunning),
  })
}
