import type { DocumentStore } from '../../../core/engine/ports/document-store.js'
import { DocumentMap } from '../shared/document-map.js'

/** Documents in this process's memory. */
export function memoryDocuments(clock: () => number): DocumentStore {
  const kinds = new Map<string, DocumentMap>()
  const of = (kind: string) => {
    const known = kinds.get(kind) ?? new DocumentMap()
    kinds.set(kind, known)
    return known
  }
  return {
    get: async (kind, key) => of(kind).get(key, clock()),
    put: async (document, { version } = {}) => of(document.kind).put(document, version, clock()),
    delete: async (kind, key) => void of(kind).entries.delete(key),
    list: async (kind, options) => of(kind).list(options, clock()),
    due: async (kind, limit) => of(kind).due(limit, clock()),
    async removeExpired(limit) {
      let removed = 0
      for (const known of kinds.values()) removed += known.removeExpired(limit - removed, clock())
      return removed
    },
  }
}
