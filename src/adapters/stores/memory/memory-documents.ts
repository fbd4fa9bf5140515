import type { DocumentStore } from '../../../core/engine/ports/document-store.js'
import { DocumentMap } from '../shared/document-map.js'

/** Documents in this process's memory, by kind. */
export class DocumentKinds {
  readonly #kinds = new Map<string, DocumentMap>()

  of(kind: string): DocumentMap {
    const known = this.#kinds.get(kind) ?? new DocumentMap()
    this.#kinds.set(kind, known)
    return known
  }

  [Symbol.iterator](): Iterator<DocumentMap> {
    return this.#kinds.values()
  }
}

export function memoryDocuments(kinds: DocumentKinds, clock: () => number): DocumentStore {
  return {
    get: async (kind, key) => kinds.of(kind).get(key, clock()),
    put: async (document, { version } = {}) => kinds.of(document.kind).put(document, version, clock()),
    delete: async (kind, key) => void kinds.of(kind).entries.delete(key),
    list: async (kind, options) => kinds.of(kind).list(options, clock()),
    due: async (kind, limit) => kinds.of(kind).due(limit, clock()),
    async removeExpired(limit) {
      let removed = 0
      for (const known of kinds) removed += known.removeExpired(limit - removed, clock())
      return removed
    },
  }
}
