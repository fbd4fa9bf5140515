import type { BlobEntry, BlobStat } from '../../../core/engine/ports/blob-store.js'

/** Metadata that names the write that made an object: it tells whether a write whose answer was lost has happened. */
export const writeIdField = 'stemwork-write'

/** What S3 returns about an object in every request that shows one. */
interface ObjectAnswer {
  ETag?: string
  LastModified?: Date
  ContentType?: string
}

export function entryOf(key: string, { ETag, LastModified }: ObjectAnswer, bytes: number): BlobEntry {
  return { key, bytes, etag: unquoted(ETag ?? ''), modifiedAt: wholeSeconds(LastModified) }
}

export function statOf(key: string, answer: ObjectAnswer, bytes: number): BlobStat {
  return { ...entryOf(key, answer, bytes), contentType: answer.ContentType ?? 'application/octet-stream' }
}

export function unquoted(etag: string): string {
  return etag.replace(/^(?:W\/)?"(.*)"$/, '$1')
}

/** Listings show milliseconds, other answers whole seconds: one blob has one time. */
export function wholeSeconds(date = new Date()): number {
  return Math.floor(date.getTime() / 1000) * 1000
}
