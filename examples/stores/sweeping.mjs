// sweeping.mjs: jobs that the periodic sweep finds and removes.
import { randomUUID } from 'node:crypto'
import { plainCopy } from 'stemwork/adapter'

/** @typedef {import('stemwork/adapter').JobStore} JobStore */

/**
 * @param {import('./state.mjs').State} state
 * @returns {Pick<JobStore, 'due' | 'deliverable' | 'purge' | 'beginFilePass'>}
 */
export function sweeping(state) {
  return {
    due: async (reason, limit) => plainCopy(state.index.due(reason, state.clock(), limit)),

    deliverable: async (page) => plainCopy(state.index.deliverable(state.clock(), page)),

    purge: (target) =>
      state.journal.exclusively(async () => {
        const jobs =
          'id' in target
            ? [state.index.get(target.id)].filter((job) => job?.deleted)
            : state.index.endedBefore(target.endedBefore, target.limit)
        const ids = jobs.flatMap((job) => job?.id ?? [])
        if (ids.length > 0) await state.journal.write(ids.map((id) => [`job/${id}`, undefined]))
        for (const id of ids) state.index.remove(id)
        return ids
      }),

    beginFilePass: (everyMs) =>
      state.journal.exclusively(async () => {
        const now = state.clock()
        const { deployment, pass, begunAt } = /** @type {{ deployment: string, pass: number, begunAt: number }} */ (
          state.journal.values.get('files') ?? { deployment: randomUUID(), pass: 0, begunAt: -Infinity }
        )
        if (begunAt > now - everyMs) return undefined
        await state.journal.write([['files', { deployment, pass: pass + 1, begunAt: now }]])
        return { deployment, pass: pass + 1 }
      }),
  }
}
