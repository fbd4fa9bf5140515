// creating.mjs: how jobs enter the store, within the limits of their applications.
import { addUsage, alreadyExists, plainCopy, queueFull, quotaExceeded, StemworkError } from 'stemwork/adapter'

/** @typedef {import('stemwork/adapter').JobStore} JobStore */

/**
 * @param {import('./state.mjs').State} state
 * @returns {Pick<JobStore, 'create' | 'createAll' | 'usage' | 'findByIdempotencyKey'>}
 */
export function creating(state) {
  return {
    async create(job, { tx, ...limits } = {}) {
      if (tx !== undefined)
        throw new StemworkError('INVALID_OPTIONS', 'This store has no transactions. Call without `tx`.')
      const given = plainCopy(job)
      return await state.journal.exclusively(async () => {
        const key = given.idempotency?.key
        const first = key === undefined ? undefined : state.withIdempotencyKey(given.app, key)
        if (first) return { job: plainCopy(first), created: false }
        const [created] = await createNew(state, [given], limits)
        return { job: created, created: true }
      })
    },

    async createAll(jobs, { document, ...limits } = {}) {
      const given = plainCopy([...jobs])
      return await state.journal.exclusively(async () => {
        const put = document && state.documents.changed(document, document.version)
        if (document && !put) return undefined
        const created = await createNew(state, given, limits, put?.changes)
        put?.show()
        return created
      })
    },

    async usage(app) {
      return { ...state.usage(app) }
    },

    async findByIdempotencyKey(app, key) {
      return plainCopy(state.withIdempotencyKey(app, key))
    },
  }
}

/**
 * @param {import('./state.mjs').State} state
 * @param {import('stemwork/adapter').JobRecord[]} jobs
 * @param {Omit<import('stemwork/adapter').CreateOptions, 'tx'>} limits
 * @param {import('./journal.mjs').Changes} others changes that are written with the jobs
 */
async function createNew(state, jobs, limits, others = []) {
  const [first] = jobs
  if (!first) return []
  for (const { id } of jobs) if (state.damaged.has(id) || state.index.get(id)) throw alreadyExists(id)
  const used = countedIn(state, first.app, jobs.length, limits)
  const createdAt = state.clock()
  return await state.keep(
    jobs.map((job) => ({ ...job, createdAt })),
    [...used, ...others],
  )
}

/**
 * Changes that count more jobs, if the application may have that many.
 *
 * @param {import('./state.mjs').State} state @param {string} app @param {number} more
 * @param {Omit<import('stemwork/adapter').CreateOptions, 'tx'>} limits
 */
export function countedIn(state, app, more, { maxQueued = Infinity, quota }) {
  const queued = state.index.queued(app)
  if (queued + more - 1 >= maxQueued) throw queueFull(maxQueued)
  if (!quota) return []
  const refused = quotaExceeded(quota, state.usage(app), more, state.clock())
  if (refused) throw refused
  return state.withUsage(app, addUsage(state.usage(app), { jobs: more }))
}
