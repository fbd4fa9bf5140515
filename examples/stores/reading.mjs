// reading.mjs: how jobs are read, listed and counted.
import { plainCopy } from 'stemwork/adapter'

/** @typedef {import('stemwork/adapter').JobStore} JobStore */

/**
 * @param {import('./state.mjs').State} state
 * @returns {Pick<JobStore, 'get' | 'list' | 'count' | 'resultBytes' | 'recordBytes' | 'unreadable'>}
 */
export function reading(state) {
  return {
    async get(id) {
      const job = state.known(id)
      return job && !job.deleted ? plainCopy(job) : undefined
    },

    async list({ limit, offset = 0, after, ...query }) {
      /** @type {Awaited<ReturnType<JobStore['list']>>} */
      const found = []
      if (limit <= 0) return found
      let skip = offset
      await state.index.each(query, after, (job) => {
        if (skip-- <= 0) found.push(plainCopy(job))
        return found.length < limit
      })
      return found
    },

    async count(query, { max } = {}) {
      return state.index.count(query, max)
    },

    async resultBytes(app) {
      return state.index.resultBytes(app)
    },

    async recordBytes(app) {
      return state.index.recordBytes(app)
    },

    async unreadable() {
      return [...state.damaged]
    },
  }
}
