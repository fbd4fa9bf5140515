import type { DocumentStore } from '../ports/document-store.js'
import { rested, type Turn } from './rested.js'

/** Bytes of a document besides its value, including its index rows. */
const ordinaryDocumentBytes = 500
/** Small, because a page blocks the event loop: the document of a batch with many idempotency keys has 12 kB. */
const perPage = 25

/**
 * Estimates the bytes that a store needs for the documents of this kind whose keys are `prefix` and a name without a
 * slash. Their number has no bound, so other work gets a turn between the pages.
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
