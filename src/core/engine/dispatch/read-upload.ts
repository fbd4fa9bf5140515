import { createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { badInput, tooLarge } from '../errors.js'
import type { BlobStore } from '../ports/blob-store.js'

/**
 * Writes an uploaded input to `path`. A client that sent it straight to the blob store may have sent a multipart form, and a
 * larger file than it was allowed: both are settled here.
 *
 * @throws StemworkError `BAD_INPUT` with reason `upload_missing`, `too_large` or `decode_failed`.
 */
export async function readUpload(
  blobs: BlobStore,
  key: string,
  path: string,
  { signal, maxBytes }: { signal: AbortSignal; maxBytes: number },
): Promise<{ bytes: number }> {
  const blob = await blobs.get(key, { signal })
  if (!blob)
    throw badInput(
      'upload_missing',
      'The uploaded file is no longer there. Upload it again and create a new job with the new download URL.',
    )
  // Not before it is needed: only hosts that take uploads read forms.
  const { formOverheadBytes, unwrapMultipart } = await import('../upload/form-file.js')
  const limited = async function* () {
    let bytes = 0
    for await (const chunk of unwrapMultipart(blob.body)) {
      bytes += chunk.byteLength
      if (bytes > maxBytes || blob.stat.bytes > maxBytes + formOverheadBytes) throw tooLarge(maxBytes)
      yield chunk
    }
  }
  // What an earlier try left that the blob store broke off.
  await rm(path, { force: true })
  const file = createWriteStream(path, { flags: 'wx', mode: 0o600 })
  await pipeline(limited, file, { signal })
  return { bytes: file.bytesWritten }
}
