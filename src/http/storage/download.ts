import { attachment } from '../../core/engine/job/attachment.js'
import { parseResultKey } from '../../core/engine/job/blob-keys.js'
import type { BlobStat } from '../../core/engine/ports/blob-store.js'
import { type ApiAnswer, empty } from '../routing/answer.js'
import type { Call } from '../routing/call.js'
import { Problem } from '../routing/problem.js'
import type { Grant } from '../auth/signed-url.js'
import { refuseRevoked } from '../routing/job-link.js'
import { decideRange } from './range.js'
import { requireGrant, storageKey } from './storage-link.js'

/** Answers GET and HEAD of a signed link with the file, a part of it, or 304. */
export async function download(call: Call, path: string): Promise<ApiAnswer> {
  const key = storageKey(path)
  const grant = requireGrant(call, 'GET', key)
  await refuseRevokedOf(call, grant)
  const { blobs } = call.service.engine
  const stat = await blobs.stat(key)
  if (!stat) throw await missing(call, key)

  const headers = fileHeaders(stat, grant.fileName)
  const decision = decideRange(call.request.headers, stat)
  switch (decision.kind) {
    case 'changed':
      throw new Problem(
        'PRECONDITION_FAILED',
        'The file does not match If-Match or If-Unmodified-Since. Check it again with HEAD, or leave the header out.',
        { headers: { etag: `"${stat.etag}"` } },
      )
    case 'unchanged':
      return empty(304, headers)
    case 'unsatisfiable':
      throw new Problem(
        'RANGE_NOT_SATISFIABLE',
        `The file has ${stat.bytes} bytes, but the range starts after its end. Ask for a range within the file.`,
        { headers: { etag: `"${stat.etag}"`, 'content-range': `bytes */${stat.bytes}` } },
      )
    case 'whole':
    case 'part': {
      const range = decision.kind === 'part' ? decision.range : undefined
      if (range) {
        headers['content-range'] = `bytes ${range.start}-${range.end}/${stat.bytes}`
        // A host that compressed it would answer with a part of another file.
        headers['cache-control'] += ', no-transform'
      }
      headers['content-length'] = String(range ? range.end - range.start + 1 : stat.bytes)
      const status = range ? 206 : 200
      if (call.request.method === 'HEAD') return empty(status, headers)
      const { options, downloads, sendQueue } = call.service
      const slot = downloads.take(grant.app)
      const blob = await blobs.get(key, { range, app: grant.app, reuseMemory: true }).catch((error: unknown) => {
        slot.release()
        throw error
      })
      if (blob) {
        const source = sendQueue.paced(grant.app, blob.body)
        return { status, headers, body: { source, idleMs: options.limits.idleMs, reusesMemory: true, slot } }
      }
      slot.release()
      throw await missing(call, key)
    }
    default:
      return decision satisfies never
  }
}

function fileHeaders(stat: BlobStat, fileName = stat.key.slice(stat.key.lastIndexOf('/') + 1)): Record<string, string> {
  return {
    'content-type': stat.contentType,
    'content-disposition': attachment(fileName),
    etag: `"${stat.etag}"`,
    'last-modified': new Date(stat.modifiedAt).toUTCString(),
    'accept-ranges': 'bytes',
    'cache-control': 'private, no-cache',
    // A client's file must never run as a page of the host's origin.
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
  }
}

/** @throws Problem `GONE` if a link to the job led here and is revoked. */
async function refuseRevokedOf({ service }: Call, { key, keyId }: Grant): Promise<void> {
  const jobId = parseResultKey(key)?.jobId
  if (keyId !== undefined && jobId !== undefined) await refuseRevoked(service, jobId, keyId)
}

async function missing(call: Call, key: string): Promise<Problem> {
  const result = parseResultKey(key)
  if (!result)
    return new Problem(
      'NOT_FOUND',
      'There is no file here: nothing was uploaded yet, or the upload has expired or was removed with its job.',
    )
  const job = await call.service.engine.get(result.jobId)
  return job?.expired
    ? new Problem('GONE', 'The result files of this job have expired and were removed. Create the job again.')
    : new Problem('NOT_FOUND', 'There is no such file.')
}
