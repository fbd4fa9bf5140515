import { z } from 'zod'

/** How urgent a job is among those of its application: 0 is usual, higher comes first. Not a fine scale, for each step is a list of its own in a store. */
export const prioritySchema = z.number().int().min(-2).max(2)

export const ruleTargetSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('deployment') }),
  z.strictObject({ kind: z.literal('application'), id: z.string().min(1) }),
  z.strictObject({ kind: z.literal('workflow'), id: z.string().min(1) }),
])
/** What a rule is for. */
export type RuleTarget = z.infer<typeof ruleTargetSchema>

/**
 * `open`: jobs are accepted and run. `paused`: jobs are accepted and wait; none is begun, and those that run go on. `draining`: no new
 * job is accepted, and those that are there are worked off.
 */
export const ruleStateSchema = z.enum(['open', 'paused', 'draining'])
export type RuleState = z.infer<typeof ruleStateSchema>

/** What operators have decided about an application, a workflow or the whole deployment. Kept by the store, for all its nodes. */
export const schedulingRuleSchema = z.object({
  target: ruleTargetSchema,
  state: ruleStateSchema,
  /** Jobs that may run at a time, on all workers together; null: any number. */
  maxRunning: z.number().int().positive().nullable(),
})
export type SchedulingRule = z.infer<typeof schedulingRuleSchema>

/** What is given is changed. */
export const ruleChangeSchema = z.strictObject({
  state: ruleStateSchema.optional(),
  maxRunning: z.number().int().positive().nullable().optional(),
})
export type RuleChange = z.input<typeof ruleChangeSchema>

export function isSameTarget(a: RuleTarget, b: RuleTarget): boolean {
  return a.kind === b.kind && idOf(a) === idOf(b)
}

/** Empty for the deployment. */
export function idOf(target: RuleTarget): string {
  return target.kind === 'deployment' ? '' : target.id
}

/** The rules after a change. One that says nothing any more is gone. */
export function changedRules(
  rules: readonly SchedulingRule[],
  target: RuleTarget,
  change: RuleChange,
): SchedulingRule[] {
  const others = rules.filter((rule) => !isSameTarget(rule.target, target))
  const known = rules.find((rule) => isSameTarget(rule.target, target)) ?? { target, state: 'open', maxRunning: null }
  const next: SchedulingRule = {
    target,
    state: change.state ?? known.state,
    maxRunning: change.maxRunning === undefined ? known.maxRunning : change.maxRunning,
  }
  return next.state === 'open' && next.maxRunning === null ? others : [...others, next]
}

/** The rules for a job: its application's, its workflow's and the deployment's. */
export function rulesFor(rules: readonly SchedulingRule[], job: { app: string; workflow: string }): SchedulingRule[] {
  return rules.filter(({ target }) => {
    switch (target.kind) {
      case 'deployment':
        return true
      case 'application':
        return target.id === job.app
      case 'workflow':
        return target.id === job.workflow
      default:
        return target satisfies never
    }
  })
}

/** Whether the rules keep a job from being begun. One whose lease ran out counts as running already. */
export function isHeldBack(
  rules: readonly SchedulingRule[],
  job: { app: string; workflow: string; status: string },
  running: (target: RuleTarget) => number,
): boolean {
  return rulesFor(rules, job).some(
    ({ target, state, maxRunning }) =>
      state === 'paused' || (maxRunning !== null && job.status === 'QUEUED' && running(target) >= maxRunning),
  )
}
