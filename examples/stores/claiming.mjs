// claiming.mjs: how jobs change: by claims, which the scheduling rules allow or refuse, and by transitions.
import { addUsage, changedRules, claim, mostCounted, plainCopy, transition } from 'stemwork/adapter'
import { countedIn } from './creating.mjs'

/** @typedef {import('stemwork/adapter').JobChange} JobChange */
/** @typedef {import('stemwork/adapter').JobStore} JobStore */
/** @typedef {import('stemwork/adapter').SchedulingRule} SchedulingRule */

/**
 * @param {import('./state.mjs').State} state
 * @returns {Pick<JobStore, 'claim' | 'apply' | 'rules' | 'changeRule' | 'ahead' | 'backlog'>}
 */
export function claiming(state) {
  const rules = () => /** @type {SchedulingRule[]} */ (state.journal.values.get('rules') ?? [])

  /** The usage that a change counts is written with it. @param {string} app @param {JobChange} change */
  const counted = (app, change) => {
    if (change.kind === 'retry') return countedIn(state, app, 1, change)
    const usage = 'usage' in change && change.usage
    return usage ? state.withUsage(app, addUsage(state.usage(app), usage)) : []
  }

  return {
    claim: ({ id, ...request }) =>
      state.journal.exclusively(async () => {
        const now = state.clock()
        const wanted = { ...request, rules: rules() }
        const job = id === undefined ? state.index.takeNext(now, wanted) : state.index.get(id)
        const next = job && state.index.mayBegin(job, wanted) && claim(job, request, now)
        return next ? (await state.keep([next]))[0] : undefined
      }),

    async apply(id, change) {
      const given = plainCopy(change)
      return await state.journal.exclusively(async () => {
        const job = state.known(id)
        const next = job && transition(job, given, state.clock())
        if (!next) return undefined
        const [kept] = await state.keep([next], counted(next.app, given))
        return kept
      })
    },

    async rules() {
      return plainCopy(rules())
    },

    async changeRule(target, change) {
      const given = plainCopy({ target, change })
      await state.journal.exclusively(() =>
        state.journal.write([['rules', changedRules(rules(), given.target, given.change)]]),
      )
    },

    async ahead(id, { max }) {
      return state.index.ahead(id, state.clock(), max)
    },

    async backlog() {
      return state.index.backlog(state.clock(), mostCounted)
    },
  }
}
