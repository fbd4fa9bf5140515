import { z } from 'zod'
import type { DocumentStore, DocumentWrite } from '../../../core/engine/ports/document-store.js'
import { DocumentMap } from '../shared/document-map.js'
import { answerWithin } from './answer-deadline.js'
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
   * Does the work and then writes the document, while no other document of its kind changes. `undefined`: the document
   * has another version, and nothing was done.
   */
  after<Result>(
    document: DocumentWrite & { version: number },
    work: (write: () => Promise<void>) => Promise<Result>,
  ): Promise<Result | undefined>
}

/**
 * All documents of a kind in one entry of the backend: there are few, kept in memory from the first use, as no other
 * process writes them.
 */
export function keyvDocuments(backend: Backend, clock: () => number, timeoutMs: number): KeyvDocuments {
  const known = new Map<string, Promise<DocumentMap>>()
  const locks = new KeyLocks()
  const read = (kind: string) => {
    const map = known.get(kind) ?? load(backend, kind)
    known.set(kind, map)
    // A failed read is repeated at the next use.
    map.catch(() => known.delete(kind))
    return map
  }

  const look = <Result>(kind: string, use: (map: DocumentMap) => Result): Promise<Result> =>
    answerWithin(timeoutMs, async () => use(await read(kind)))

  /** Works on the documents of a kind without other changes meanwhile, unless the caller has given up by then. */
  const alone = <Result>(kind: string, work: (map: DocumentMap) => Promise<Result>): Promise<Result> =>
    answerWithin(timeoutMs, (deadline) =>
      locks.hold(kind, async () => {
        const map = await read(kind)
        deadline.check()
        return await work(map)
      }),
    )

  const change = <Result>(kind: string, make: (map: DocumentMap) => Result): Promise<Result> =>
    alone(kind, (map) => keep(kind, map, make))

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
    return await alone(kind, async (map) => {
      if (!map.hasVersion(key, version, clock())) return undefined
      return await work(async () => void (await keep(kind, map, (next) => next.put(document, version, clock()))))
    })
  }

  return {
    after,
    get: (kind, key) => look(kind, (map) => map.get(key, clock())),
    put: (document, { version } = {}) => change(document.kind, (map) => map.put(document, version, clock())),
    delete: async (kind, key) => void (await change(kind, (map) => (map.entries.delete(key) ? true : undefined))),
    list: (kind, options) => look(kind, (map) => map.list(options, clock())),
    due: (kind, limit) => look(kind, (map) => map.due(limit, clock())),
    async removeExpired(limit) {
      let removed = 0
      for (const kind of known.keys())
        removed += await change(kind, (map) => map.removeExpired(limit - removed, clock()))
      return removed
    },
  }
}

async function load(backend: Backend, kind: string): Promise<DocumentMap> {
  const key = entryKey(kind)
  return new DocumentMap(parsed(entriesSchema, key, await backend.read(key)) ?? [])
}

function entryKey(kind: string): string {
  return `stemwork/documents/${kind}`
}
