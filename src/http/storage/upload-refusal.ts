import { json } from 'node:stream/consumers'
import { z } from 'zod'
import type { BlobStat, BlobStore } from '../../core/engine/ports/blob-store.js'
import { formOverheadBytes, peekBoundary, peekBytes } from '../../core/engine/intake/form-file.js'
import { Problem } from '../routing/problem.js'
import type { OwnUpload } from './storage-link.js'
import { usedTicketKey } from '../../core/engine/job/blob-keys.js'

const refusalSchema = z.object({ reason: z.string(), message: z.string() })

/** A small marker beside the upload's key; retention removes it like an unused upload. */
function markerKey(key: string): string {
  return `${key}.refused`
}

export async function rememberRefusal(blobs: BlobStore, key: string, problem: Problem): Promise<void> {
  const refusal: z.infer<typeof refusalSchema> = { reason: problem.reason ?? 'decode_failed', message: problem.message }
  await blobs.put(markerKey(key), JSON.stringify(refusal), { contentType: 'application/json' })
}

/** Whether an earlier file was refused. */
export async function isRefused(blobs: BlobStore, key: string): Promise<boolean> {
  return (await blobs.stat(markerKey(key))) !== undefined
}

export async function forgetRefusal(blobs: BlobStore, key: string): Promise<void> {
  await blobs.delete(markerKey(key))
}

/**
 * @throws Problem `UPLOAD_REFUSED` with the reason, if the link has expired or the upload is not there or too large.
 */
export async function requireUpload(blobs: BlobStore, { key, expired }: OwnUpload, maxBytes: number): Promise<void> {
  if (expired) {
    const message = 'This download link has expired. Upload the file again with a new ticket from GET /upload.'
    throw new Problem('UPLOAD_REFUSED', message)
  }
  const stat = await blobs.stat(key)
  // Our own route has counted the bytes already; a store that took the file directly has not.
  if (stat && stat.bytes > maxBytes && !(await isFormOfFit(blobs, stat, maxBytes))) {
    throw new Problem(
      'UPLOAD_REFUSED',
      `The uploaded file is larger than the limit of ${maxBytes} bytes. Upload a smaller or compressed file.`,
      { reason: 'too_large' },
    )
  }
  if (stat) return
  const marker = await blobs.get(markerKey(key))
  if (!marker) {
    if (await isRemoved(blobs, key)) throw removedUpload()
    const text =
      'No file has been uploaded for this download link. PUT the file to the uploadUrl of the same ticket, wait for ' +
      'its answer 200, then create the job.'
    throw new Problem('UPLOAD_REFUSED', text, { reason: 'upload_missing' })
  }
  const { reason, message } = refusalSchema.parse(await json(marker.body))
  throw new Problem('UPLOAD_REFUSED', `The upload was refused. ${message}`, { reason })
}

/**
 * Whether the upload is a form, which a store keeps as received, that may hold a file within the limit: its size is
 * known only when the form is read.
 */
async function isFormOfFit(blobs: BlobStore, { key, bytes }: BlobStat, maxBytes: number): Promise<boolean> {
  if (bytes > maxBytes + formOverheadBytes) return false
  const blob = await blobs.get(key, { range: { start: 0, end: Math.min(bytes, peekBytes) - 1 } })
  const iterator = blob?.body[Symbol.asyncIterator]()
  try {
    return iterator !== undefined && (await peekBoundary(iterator)).boundary !== undefined
  } finally {
    await iterator?.return?.()
  }
}

/** Whether a file was ever stored with the ticket, even if it is gone. */
export async function isUsed(blobs: BlobStore, key: string): Promise<boolean> {
  return (await Promise.all([blobs.stat(key), isRemoved(blobs, key)])).some(Boolean)
}

/** Whether the file of a ticket is gone, or is just being removed. */
export async function isRemoved(blobs: BlobStore, key: string): Promise<boolean> {
  return (await blobs.stat(usedTicketKey(key))) !== undefined
}

export function removedUpload(): Problem {
  const text =
    'The file of this download link was removed with a job that used it, or has expired. Upload it again with a new ' +
    'ticket from GET /upload.'
  return new Problem('UPLOAD_REFUSED', text, { reason: 'upload_missing' })
}
