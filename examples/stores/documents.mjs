// documents.mjs: small records beside the jobs.
import { DocumentMap } from 'stemwork/adapter'

/** @typedef {import('stemwork/adapter').DocumentWrite} DocumentWrite */

const keyOf = (/** @type {string} */ kind, /** @type {string} */ key) => `document/${JSON.stringify([kind, key])}`

/** All documents in memory. */
export class Documents {
  /** @type {Map<string, DocumentMap>} */
  kinds = new Map()

  /** @param {import('./journal.mjs').Journal} journal @param {() => number} clock */
  constructor(journal, clock) {
    this.clock = clock
    for (const [name, entry] of journal.values) {
      if (!name.startsWith('document/')) continue
      const [kind, key] = JSON.parse(name.slice('document/'.length))
      this.of(kind).entries.set(key, /** @type {any} */ (entry))
    }
  }

  of(/** @type {string} */ kind) {
    const known = this.kinds.get(kind) ?? new DocumentMap()
    this.kinds.set(kind, known)
    return known
  }

  /**
   * Changes of a write, and how to show them once they are in the journal. `undefined`: the version differs.
   *
   * @param {DocumentWrite} document @param {number} [version]
   */
  changed(document, version) {
    const { kind, key } = document
    const next = new DocumentMap(this.of(kind).entries)
    const written = next.put(document, version, this.clock())
    if (written === undefined) return undefined
    /** @type {import('./journal.mjs').Changes} */
    const changes = [[keyOf(kind, key), next.entries.get(key)]]
    return { version: written, changes, show: () => void this.kinds.set(kind, next) }
  }
}

/**
 * @param {import('./state.mjs').State} state
 * @returns {import('stemwork/adapter').DocumentStore}
 */
export function documents({ journal, clock, documents }) {
  const { kinds } = documents
  return {
    get: async (kind, key) => documents.of(kind).get(key, clock()),
    list: async (kind, options) => documents.of(kind).list(options, clock()),
    due: async (kind, limit) => documents.of(kind).due(limit, clock()),

    put: (document, { version } = {}) =>
      journal.exclusively(async () => {
        const put = documents.changed(document, version)
        if (!put) return undefined
        await journal.write(put.changes)
        put.show()
        return put.version
      }),

    delete: (kind, key) =>
      journal.exclusively(async () => {
        await journal.write([[keyOf(kind, key), undefined]])
        documents.of(kind).entries.delete(key)
      }),

    removeExpired: (limit) =>
      journal.exclusively(async () => {
        const now = clock()
        const expired = [...kinds]
          .flatMap(([kind, map]) => [...map.entries].map(([key, { expiresAt }]) => ({ kind, key, expiresAt })))
          .filter(({ expiresAt }) => expiresAt <= now)
          .slice(0, limit)
        if (expired.length > 0) await journal.write(expired.map(({ kind, key }) => [keyOf(kind, key), undefined]))
        for (const { kind, key } of expired) documents.of(kind).entries.delete(key)
        return expired.length
      }),
  }
}
