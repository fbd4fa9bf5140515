import { constants, createWriteStream } from 'node:fs'
import { copyFile, rm, truncate } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { badInput, type StemworkError, tooLarge } from '../../errors.js'
import type { BlobStore } from '../../ports/blob-store.js'
import { formOverheadBytes, unwrapMultipart } from '../../intake/form-file.js'

/**
 * Writes an uploaded input to `path`. A client that uploads directly to the blob store may send a multipart form, which
 * is unwrapped, or a file that is too large, which is refused.
 *
 * @throws StemworkError `BAD_INPUT` with reason `upload_missing`, `too_large` or `decode_failed`.
 */
export async function readUpload(
  blobs: BlobStore,
  key: string,
  path: string,
  { signal, maxBytes }: { signal: AbortSignal; maxBytes: number },
): Promise<{ bytes: number }> {
  // Removes the file of an earlier try that an outage of the blob store interrupted.
  await rm(path, { force: true })
  // Clients cannot write to such a store directly, so its content was checked on arrival.
  if (blobs.localFile && !blobs.signPut) {
    const file = await blobs.localFile(key)
    if (!file) throw missing()
    if (file.bytes > maxBytes) throw tooLarge(maxBytes)
    if (await copyStart(file, path)) return { bytes: file.bytes }
  }
  const blob = await blobs.get(key, { signal })
  if (!blob) throw missing()
  const limited = async function* () {
    let bytes = 0
    for await (const chunk of unwrapMultipart(blob.body)) {
      bytes += chunk.byteLength
      if (bytes > maxBytes || blob.stat.bytes > maxBytes + formOverheadBytes) throw tooLarge(maxBytes)
      yield chunk
    }
  }
  const file = createWriteStream(path, { flags: 'wx', mode: 0o600 })
  await pipeline(limited, file, { signal })
  return { bytes: file.bytesWritten }
}

/** Copies within the kernel. Returns false on a failure: reading the blob then succeeds, or throws the cause. */
async function copyStart(source: { path: string; bytes: number }, path: string): Promise<boolean> {
  try {
    await copyFile(source.path, path, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE)
    await truncate(path, source.bytes)
    return true
  } catch {
    await rm(path, { force: true })
    return false
  }
}

function missing(): StemworkError {
  return badInput(
    'upload_missing',
    'The uploaded file is no longer there. Upload it again and create a new job with the new download URL.',
  )
}
