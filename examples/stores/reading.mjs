// reading.mjs: what is asked about jobs.
import { plainCopy } from 'stemwork/adapter'

/** @typedef {import('stemwork/adapter').JobStore} JobStore */

/**
 * @param {import('./state.mjs').State} state
 * @returns {Pick<JobStore, 'get' | 'list' | 'count' | 'resultBytes' | 'unreadable'>}
 */
export function reading(state) {
  return {
    async get(id) {
      const job = state.known(id)
      return job && !job.deleted ? plainCopy(job) : undefined
    },

    async list({ limit, offset = 0, after, ...query }) {
      const found = []
      for (const job of state.index.select(query, after)) {
        if (found.length >= offset + limit) break
        found.push(job)
      }
      return plainCopy(found.slice(offset))
    },

    async count(query, { max } = {}) {
      return state.index.count(query, max)
    },

    async resultBytes(app) {
      return state.index.resultBytes(app)
    },

    async unreadable() {
      return [...state.damaged]
    },
  }
}
