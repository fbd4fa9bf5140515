import { attachment } from '../../core/engine/job/attachment.js'
import { parseResultKey } from '../../core/engine/job/blob-keys.js'
import type { BlobStat, ByteRange } from '../../core/engine/ports/blob-store.js'
import { type ApiAnswer, empty } from '../routing/answer.js'
import type { Call } from '../routing/call.js'
import { notFound, Problem } from '../routing/problem.js'
import type { Grant } from '../auth/signed-url.js'
import { paced } from '../routing/paced-stream.js'
import { refuseRevoked } from '../routing/job-link.js'
import { decideRange, deciding } from './range.js'
import { inTurnOfLink, refuseExpired, storageKey } from './storage-link.js'

/** Answers GET and HEAD of a signed link with the file, a part of it, or 304. */
export async function download(call: Call, path: string): Promise<ApiAnswer> {
  const key = storageKey(path)
  return await inTurnOfLink(call, 'GET', key, (grant) => answer(call, key, grant))
}

async function answer(call: Call, key: string, grant: Grant): Promise<ApiAnswer> {
  refuseExpired(grant)
  call.service.limiter.take(grant.app, 'link', call.headers)
  await refuseRevokedOf(call, grant)
  const { method, headers } = call.request
  // The usual case, in which the file is looked up only once.
  if (method === 'GET' && !deciding.some((name) => headers.has(name))) return await file(call, key, grant)
  const stat = await call.service.engine.blobs.stat(key)
  if (!stat) throw await missing(call, key)
  const decision = decideRange(headers, stat)
  switch (decision.kind) {
    case 'changed':
      throw new Problem(
        'PRECONDITION_FAILED',
        'The file does not match If-Match or If-Unmodified-Since. Check it again with HEAD, or leave the header out.',
        { headers: { etag: `"${stat.etag}"` } },
      )
    case 'unchanged':
      return empty(304, fileHeaders(stat, grant.fileName))
    case 'unsatisfiable':
      throw new Problem(
        'RANGE_NOT_SATISFIABLE',
        `The file has ${stat.bytes} bytes, but the range asks for none of them. Ask for a range within the file.`,
        { headers: { etag: `"${stat.etag}"`, 'content-range': `bytes */${stat.bytes}` } },
      )
    case 'whole':
    case 'part': {
      const range = decision.kind === 'part' ? decision.range : undefined
      if (method === 'HEAD') return empty(range ? 206 : 200, partHeaders(stat, grant, range))
      return await file(call, key, grant, range)
    }
    default:
      return decision satisfies never
  }
}

async function file(call: Call, key: string, grant: Grant, range?: ByteRange): Promise<ApiAnswer> {
  const { engine, options, downloads, turns } = call.service
  const slot = downloads.take(grant.app)
  const blob = await engine.blobs.get(key, { range, app: grant.app, reuseMemory: true }).catch((error: unknown) => {
    slot.release()
    throw error
  })
  if (!blob) {
    slot.release()
    throw await missing(call, key)
  }
  return {
    status: range ? 206 : 200,
    headers: partHeaders(blob.stat, grant, range),
    body: {
      source: paced(turns, grant.app, blob.body),
      idleMs: options.limits.idleMs,
      reusesMemory: true,
      slot,
    },
  }
}

function partHeaders(stat: BlobStat, { fileName }: Grant, range: ByteRange | undefined): Record<string, string> {
  const headers = fileHeaders(stat, fileName)
  if (range) {
    headers['content-range'] = `bytes ${range.start}-${range.end}/${stat.bytes}`
    // Compressed by a host, it would be a part of another file.
    headers['cache-control'] += ', no-transform'
  }
  headers['content-length'] = String(range ? range.end - range.start + 1 : stat.bytes)
  return headers
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
    return notFound(
      'There is no file here: nothing was uploaded yet, or the upload has expired or was removed with its job.',
    )
  const job = await call.service.engine.get(result.jobId)
  if (job?.expired)
    return new Problem('GONE', 'The result files of this job have expired and were removed. Create the job again.')
  const isOutput = Object.values(job?.outputs ?? {}).some((output) => output.key === key)
  return isOutput ? lostResult() : notFound('There is no such file.')
}

export function lostResult(): Problem {
  return notFound(
    'This file of a finished job is no longer in the storage of the service. Create the job again, and tell the ' +
      'operator that files are missing.',
  )
}
