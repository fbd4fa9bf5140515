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

/** The rules in one entry of the backend, and in memory from the first use: nobody else writes them. */
export class SchedulingRules {
  readonly #backend: Backend
  #known: Promise<SchedulingRule[]> | undefined

  constructor(backend: Backend) {
    this.#backend = backend
  }

  async read(): Promise<readonly SchedulingRule[]> {
    this.#known ??= this.#load().catch((error: unknown) => {
      this.#known = undefined
      throw error
    })
    return await this.#known
  }

  async change(locks: KeyLocks, target: RuleTarget, change: RuleChange): Promise<void> {
    await locks.hold(rulesKey, async () => {
      const next = changedRules(await this.read(), target, change)
      try {
        await this.#backend.write(rulesKey, JSON.stringify(next))
        this.#known = Promise.resolve(next)
      } catch (error) {
        // The failed write may have happened.
        this.#known = undefined
        throw error
      }
    })
  }

  async #load(): Promise<SchedulingRule[]> {
    return parsed(z.array(schedulingRuleSchema), rulesKey, await this.#backend.read(rulesKey)) ?? []
  }
}
