import { StemworkError } from '../../core/engine/errors.js'
import { fileFromForm, formOverheadBytes, peekBoundary } from '../../core/engine/intake/form-file.js'
import { type ApiAnswer, json } from '../routing/answer.js'
import type { Call } from '../routing/call.js'
import { Problem, type ProblemCode, toProblem } from '../routing/problem.js'
import type { RequestBody } from '../routing/request-body.js'
import type { Grant } from '../auth/signed-url.js'
import { endedKey, inTurnOfLink, refuseEndedKey, refuseExpired, storageKey } from './storage-link.js'
import type { UploadSlot } from '../routing/storage-use.js'
import { forgetRefusal, isRefused, isUsed, rememberRefusal } from './upload-refusal.js'

/** Stores the file that is sent to a ticket: raw, chunked, or in a multipart form. A ticket writes once. */
export async function upload(call: Call, path: string): Promise<ApiAnswer> {
  const key = storageKey(path)
  return await inTurnOfLink(call, 'PUT', key, (grant) => store(call, key, grant))
}

async function store(call: Call, key: string, grant: Grant): Promise<ApiAnswer> {
  const { blobs } = call.service.engine
  const { body } = call
  const permission = grant.keyId === undefined ? undefined : call.service.keyWatch.follow(grant.keyId)
  let slot: UploadSlot | undefined
  let isStored = false
  try {
    refuseExpired(grant)
    if (call.request.headers.has('content-range')) throw partOfFile()
    const announced = Number(call.request.headers.get('content-length') ?? 0)
    if (announced > grant.maxBytes + formOverheadBytes) throw tooLarge(grant.maxBytes)
    slot = await call.service.storage.begin(grant.app, key, announced)
    // Looked up while the store begins, which takes as long.
    const usable = refuseUnusable(call, grant, key)
    const refused = isRefused(blobs, key)
    for (const looking of [usable, refused]) looking.catch(() => {})
    const stat = await blobs.put(key, counted(payload(body, grant, announced, permission?.signal), slot, usable), {
      ifAbsent: true,
      contentType: 'application/octet-stream',
    })
    isStored = true
    if (await refused) await forgetRefusal(blobs, key)
    return json({ bytes: stat.bytes }, { headers: { etag: `"${stat.etag}"` } })
  } catch (error) {
    const problem = problemOf(permission?.signal.aborted ? endedKey() : error)
    if (problem.code === 'INTERNAL_ERROR') throw error
    // Clients that ignore this answer learn the reason when they create the job.
    if (remembered.includes(problem.code)) await rememberRefusal(blobs, key, problem)
    await body.discard(call.service.options.limits.discardBytes)
    throw problem
  } finally {
    permission?.release()
    slot?.end(isStored)
  }
}

function problemOf(error: unknown): Problem {
  return StemworkError.is(error) && error.code === 'ALREADY_EXISTS' ? alreadyWritten() : toProblem(error)
}

/** @throws Problem if the ticket has been used, or the key that it was made with has ended */
async function refuseUnusable(call: Call, grant: Grant, key: string): Promise<void> {
  const [used] = await Promise.all([isUsed(call.service.engine.blobs, key), refuseEndedKey(grant, call)])
  if (used) throw alreadyWritten()
}

const remembered: readonly ProblemCode[] = ['TOO_LARGE', 'BAD_INPUT', 'STORAGE_FULL']

async function* counted(
  source: AsyncIterable<Uint8Array>,
  slot: UploadSlot,
  usable: Promise<void>,
): AsyncGenerator<Uint8Array, void, undefined> {
  await usable
  for await (const chunk of source) {
    slot.received(chunk.byteLength)
    yield chunk
  }
}

async function* payload(
  body: RequestBody,
  grant: Grant,
  announced: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array, void, undefined> {
  const { boundary, bytes } = await peekBoundary(body.fileChunks(signal))
  if (boundary === undefined) {
    if (announced > grant.maxBytes) throw tooLarge(grant.maxBytes)
    yield* atMost(bytes, grant.maxBytes, grant.maxBytes)
  } else {
    yield* atMost(
      fileFromForm(atMost(bytes, grant.maxBytes + formOverheadBytes, grant.maxBytes), boundary),
      grant.maxBytes,
      grant.maxBytes,
    )
  }
}

async function* atMost(
  source: AsyncIterable<Uint8Array>,
  bytes: number,
  shownLimit: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  let rest = bytes
  for await (const chunk of source) {
    rest -= chunk.byteLength
    if (rest < 0) throw tooLarge(shownLimit)
    yield chunk
  }
}

/** RFC 9110, section 14.4: a server that would store the part as the whole must refuse it. */
function partOfFile(): Problem {
  return new Problem(
    'BAD_INPUT',
    'This request has a Content-Range header, but a link accepts only whole files. Send the whole file in one PUT ' +
      'without that header.',
  )
}

function tooLarge(maxBytes: number): Problem {
  const message = `The file is larger than the limit of ${maxBytes} bytes. Send a smaller or compressed file.`
  return new Problem('TOO_LARGE', message, { reason: 'too_large', headers: { connection: 'close' } })
}

function alreadyWritten(): Problem {
  return new Problem(
    'CONFLICT',
    'A file was already uploaded with this link, and each link can be used once. Get a new ticket from GET /upload.',
    { headers: { connection: 'close' } },
  )
}
