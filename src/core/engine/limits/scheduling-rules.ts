import { StemworkError } from '../errors.js'
import {
  everyApplication,
  idOf,
  type RuleChange,
  ruleChangeSchema,
  rulesFor,
  type RuleTarget,
  ruleTargetSchema,
} from '../job/scheduling.js'
import type { JobStore } from '../ports/job-store.js'
import { remembered } from './remembered.js'
import { checkInput, issueTexts } from '../workflow/check-input.js'

/** Submits are frequent, changes are rare. Every process sees a change after this time at the latest. */
const rememberedMs = 1000

export type RememberedRules = ReturnType<typeof rememberedRules>

/** Caches the scheduling rules for submits. Claims read them from the store. */
export function rememberedRules(jobs: JobStore) {
  const fromNowOn = () => remembered(() => jobs.rules(), rememberedMs)
  let read = fromNowOn()
  return {
    /** @throws StemworkError `DRAINING` where no new jobs are accepted. */
    async refuseDraining(job: { app: string; workflow: string }): Promise<void> {
      const draining = rulesFor(await read(), job).find(({ state }) => state === 'draining')
      if (!draining) return
      const { target } = draining
      const what = target.kind === 'deployment' ? 'The service' : `The ${target.kind} ${target.id}`
      throw new StemworkError(
        'DRAINING',
        `${what} is being drained: it finishes the jobs that it has and accepts no new ones. Try again later, or ask ` +
          'the operator.',
        { retryable: true },
      )
    },

    async isPaused(job: { app: string; workflow: string }): Promise<boolean> {
      return rulesFor(await read(), job).some(({ state }) => state === 'paused')
    },

    /** @throws StemworkError `INVALID_PARAMS`. */
    async change(target: RuleTarget, change: RuleChange): Promise<void> {
      for (const checked of [checkInput(ruleTargetSchema, target), checkInput(ruleChangeSchema, change)]) {
        if (checked.success) continue
        const problems = issueTexts(checked, 'rule')
        throw new StemworkError('INVALID_PARAMS', `Invalid scheduling rule. ${problems.join('; ')}.`)
      }
      if (idOf(target) === everyApplication && target.kind === 'application' && change.state !== undefined)
        throw new StemworkError(
          'INVALID_PARAMS',
          'All applications together are the deployment: pause, drain or open that. Only `maxRunning` can be given ' +
            'for each of them.',
        )
      await jobs.changeRule(target, change)
      read = fromNowOn()
    },
  }
}
