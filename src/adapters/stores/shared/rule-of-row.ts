import { type SchedulingRule, schedulingRuleSchema } from '../../../core/engine/job/scheduling.js'

/** Parses a rule from the row of a table: its target, its state and its limit. */
export function ruleOfRow(kind: unknown, id: unknown, state: unknown, maxRunning: unknown): SchedulingRule {
  return schedulingRuleSchema.parse({
    target: kind === 'deployment' ? { kind } : { kind, id },
    state,
    maxRunning: maxRunning === null ? null : Number(maxRunning),
  })
}
