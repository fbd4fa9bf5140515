import { z } from 'zod'
import type { DocumentStore, DocumentWrite } from '../../../core/engine/ports/document-store.js'
import { DocumentMap } from '../shared/document-map.js'
import { type Backend, parsed } from './backend.js'
import { KeyLocks } from './key-locks.js'

const entriesSchema = z.array(
  z.tuple([
    z.string(),
    z.object({ text: z.string(), version: z.number(), expiresAt: z.number(), dueAt: z.number().nullable() }),
  ]),
)

export interface KeyvDocuments extends DocumentStore {
  /**
   * Does the work and then writes the document, while nobody else changes one of its kind. `undefined`: the document
   * has another version, and nothing was done.
   */
  after<Result>(
    document: DocumentWrite & { version: number },
    work: (write: () => Promise<void>) => Promise<Result>,
  ): Promise<Result | undefined>
}

/**
 * All documents of a kind in one entry of the backend: there are few, kept in memory from the first use. Nobody else
 * writes them.
 */
export function keyvDocuments(backend: Backend, clock: () => number): KeyvDocuments {
  const known = new Map<string, Promise<DocumentMap>>()
  const locks = new KeyLocks()
  const read = (kind: string) => {
    const map = known.get(kind) ?? load(kind)
    known.set(kind, map)
    // What could not be read is read again.
    map.catch(() => known.delete(kind))
    return map
  }

  async function load(kind: string): Promise<DocumentMap> {
    const key = entryKey(kind)
    return new DocumentMap(parsed(entriesSchema, key, await backend.read(key)) ?? [])
  }

  function change<Result>(kind: string, make: (map: DocumentMap) => Result): Promise<Result> {
    return locks.hold(kind, async () => keep(kind, await read(kind), make))
  }

  /** Writes the whole kind, and shows the change once it is written. */
  async function keep<Result>(kind: string, map: DocumentMap, make: (map: DocumentMap) => Result): Promise<Result> {
    const next = new DocumentMap(map.entries)
    const result = make(next)
    if (result === undefined || result === 0) return result
    try {
      await backend.write(entryKey(kind), JSON.stringify([...next.entries]))
      known.set(kind, Promise.resolve(next))
    } catch (error) {
      // The failed write may have happened.
      known.delete(kind)
      throw error
    }
    return result
  }

  async function after<Result>(
    { version, ...document }: DocumentWrite & { version: number },
    work: (write: () => Promise<void>) => Promise<Result>,
  ): Promise<Result | undefined> {
    const { kind, key } = document
    return await locks.hold(kind, async () => {
      const map = await read(kind)
      if (!map.hasVersion(key, version, clock())) return undefined
      return await work(async () => void (await keep(kind, map, (next) => next.put(document, version, clock()))))
    })
  }

  return {
    after,
    get: async (kind, key) => (await read(kind)).get(key, clock()),
    put: (document, { version } = {}) => change(document.kind, (map) => map.put(document, version, clock())),
    delete: async (kind, key) => void (await change(kind, (map) => (map.entries.delete(key) ? true : undefined))),
    list: async (kind, options) => (await read(kind)).list(options, clock()),
    due: async (kind, limit) => (await read(kind)).due(limit, clock()),
    async removeExpired(limit) {
      let removed = 0
      for (const kind of known.keys())
        removed += await change(kind, (map) => map.removeExpired(limit - removed, clock()))
      return removed
    },
  }
}

function entryKey(kind: string): string {
  return `stemwork/documents/${kind}`
}
