import { z } from 'zod'
import {
  changedRules,
  type RuleChange,
  type RuleTarget,
  type SchedulingRule,
  schedulingRuleSchema,
} from '../../../core/engine/job/scheduling.js'
import { type Backend, parsed } from './backend.js'
import type { KeyLocks } from './key-locks.js'

const rulesKey = 'stemwork/rules'

/** The rules in one entry of the backend, and in memory from the first use: no other process writes them. */
export function schedulingRules(backend: Backend) {
  let known: Promise<SchedulingRule[]> | undefined
  const load = async () => parsed(z.array(schedulingRuleSchema), rulesKey, await backend.read(rulesKey)) ?? []
  const forget = (error: unknown): never => {
    known = undefined
    throw error
  }
  const read = () => (known ??= load().catch(forget))

  return {
    read,

    async change(locks: KeyLocks, target: RuleTarget, change: RuleChange): Promise<void> {
      await locks.hold(rulesKey, async () => {
        const next = changedRules(await read(), target, change)
        // The failed write may have happened.
        await backend.write(rulesKey, JSON.stringify(next)).catch(forget)
        known = Promise.resolve(next)
      })
    },
  }
}
