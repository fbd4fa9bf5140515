// documents.mjs: small records beside the jobs.
import { DocumentMap } from 'stemwork/adapter'

/**
 * @param {import('./state.mjs').State} state
 * @returns {import('stemwork/adapter').DocumentStore}
 */
export function documents({ journal, clock }) {
  /** @type {Map<string, DocumentMap>} */
  const kinds = new Map()
  const of = (/** @type {string} */ kind) => {
    const known = kinds.get(kind) ?? new DocumentMap()
    kinds.set(kind, known)
    return known
  }
  const keyOf = (/** @type {string} */ kind, /** @type {string} */ key) => `document/${JSON.stringify([kind, key])}`
  for (const [name, entry] of journal.values) {
    if (!name.startsWith('document/')) continue
    const [kind, key] = JSON.parse(name.slice('document/'.length))
    of(kind).entries.set(key, /** @type {any} */ (entry))
  }

  return {
    get: async (kind, key) => of(kind).get(key, clock()),
    list: async (kind, options) => of(kind).list(options, clock()),
    due: async (kind, limit) => of(kind).due(limit, clock()),

    put: (document, { version } = {}) =>
      journal.exclusively(async () => {
        const { kind, key } = document
        const next = new DocumentMap(of(kind).entries)
        const written = next.put(document, version, clock())
        if (written === undefined) return undefined
        await journal.write([[keyOf(kind, key), next.entries.get(key)]])
        kinds.set(kind, next)
        return written
      }),

    delete: (kind, key) =>
      journal.exclusively(async () => {
        await journal.write([[keyOf(kind, key), undefined]])
        of(kind).entries.delete(key)
      }),

    removeExpired: (limit) =>
      journal.exclusively(async () => {
        const now = clock()
        const expired = [...kinds]
          .flatMap(([kind, map]) => [...map.entries].map(([key, { expiresAt }]) => ({ kind, key, expiresAt })))
          .filter(({ expiresAt }) => expiresAt <= now)
          .slice(0, limit)
        if (expired.length > 0) await journal.write(expired.map(({ kind, key }) => [keyOf(kind, key), undefined]))
        for (const { kind, key } of expired) of(kind).entries.delete(key)
        return expired.length
      }),
  }
}
