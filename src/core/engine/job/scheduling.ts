import { z } from 'zod'

/**
 * Urgency of a job within its application: 0 is normal, higher comes first. The scale is coarse because each value is a
 * separate list in a store.
 */
export const prioritySchema = z.number().int().min(-2).max(2)

/**
 * Target id for every application without its own limit. Its rule only has a limit: to pause all applications, pause
 * the deployment.
 */
export const everyApplication = '*'

export const ruleTargetSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('deployment') }),
  z.strictObject({ kind: z.literal('application'), id: z.string().min(1) }),
  z.strictObject({ kind: z.literal('workflow'), id: z.string().min(1) }),
])
/** The target of a scheduling rule. */
export type RuleTarget = z.infer<typeof ruleTargetSchema>

/**
 * `open`: jobs are accepted and run. `paused`: jobs are accepted and wait; none starts, and running ones continue.
 * `draining`: no new jobs are accepted, and existing ones are finished.
 */
export const ruleStateSchema = z.enum(['open', 'paused', 'draining'])

/** An operator's rule for an application, a workflow or the whole deployment, stored for all nodes. */
export const schedulingRuleSchema = z.object({
  target: ruleTargetSchema,
  state: ruleStateSchema,
  /** Jobs that may run at a time on all workers together; null: no limit. */
  maxRunning: z.number().int().positive().nullable(),
})
export type SchedulingRule = z.infer<typeof schedulingRuleSchema>

/** A change of a rule; omitted values stay. */
export const ruleChangeSchema = z.strictObject({
  state: ruleStateSchema.optional(),
  maxRunning: z.number().int().positive().nullable().optional(),
})
export type RuleChange = z.input<typeof ruleChangeSchema>

export function isSameTarget(a: RuleTarget, b: RuleTarget): boolean {
  return a.kind === b.kind && idOf(a) === idOf(b)
}

/** Id of a rule's target; empty for the deployment. */
export function idOf(target: RuleTarget): string {
  return target.kind === 'deployment' ? '' : target.id
}

/** The rules after a change. A rule that equals the default is removed. */
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

/** The rules for a job: of its application, its workflow and the deployment, with the limit for every application. */
export function rulesFor(rules: readonly SchedulingRule[], job: { app: string; workflow: string }): SchedulingRule[] {
  const own = rules.filter(({ target }) => {
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
  const limit = limitOfAll(rules)
  if (limit === null || own.some(({ target, maxRunning }) => target.kind === 'application' && maxRunning !== null))
    return own
  return [...own, { target: { kind: 'application', id: job.app }, state: 'open', maxRunning: limit }]
}

/** Most running jobs of each application without its own limit; null: no limit. */
export function limitOfAll(rules: readonly SchedulingRule[]): number | null {
  const isOfAll = ({ target }: SchedulingRule) => target.kind === 'application' && target.id === everyApplication
  return rules.find(isOfAll)?.maxRunning ?? null
}

/** Whether the rules keep a job from starting. A job with an expired lease counts as already running. */
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
