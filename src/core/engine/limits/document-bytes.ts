import type { DocumentStore } from '../ports/document-store.js'
import { rested, type Turn } from './rested.js'

/** Bytes of a document besides its value, with its rows in indexes. */
const ordinaryDocumentBytes = 500
/** A page is read at once, and one of a batch with many repeatable requests has 12 kB. */
const perPage = 25

/**
 * About what a store needs for the documents of this kind whose keys are `prefix` and a name without a slash. There may
 * be any number, so others are served between the pages.
 */
export async function documentBytes(
  documents: DocumentStore,
  { kind, prefix }: { kind: string; prefix: string },
  turn: Turn = rested,
): Promise<number> {
  let bytes = 0
  let after = prefix
  for (;;) {
    const page = await turn(() => documents.list(kind, { limit: perPage, after }))
    for (const { key, value } of page) {
      if (!key.startsWith(prefix)) return bytes
      if (!key.includes('/', prefix.length)) bytes += ordinaryDocumentBytes + JSON.stringify(value).length
      after = key
    }
    if (page.length < perPage) return bytes
  }
}
