import { randomUUID } from 'node:crypto'
import { Server } from '@tus/server'
import { uploadKey } from '../../core/engine/job/blob-keys.js'
import type { ApiAnswer } from '../routing/answer.js'
import type { KeyedCall } from '../routing/call.js'
import { permit } from '../routing/permission.js'
import { Problem, type ProblemCode, problemTypes } from '../routing/problem.js'
import { storageLink } from './storage-link.js'
import { UploadLocks } from './upload-locks.js'
import { noSuchUpload, otherOffset, UploadParts, uploadOver } from './upload-parts.js'

/** Header with the address at which the complete file can be read, which is also what a job takes as its input. */
export const downloadUrlHeader = 'download-url'

/** How long a request that has to release its lock may take to store what it has received. */
const drainMs = 100
/** Shared by all services of this process, by application and upload. */
const locks = new UploadLocks()

/** Answers a request of the protocol, tus 1.0, for the uploads of the caller's application. */
export async function answerTus(call: KeyedCall, resumablePath: string, id: string | undefined): Promise<ApiAnswer> {
  const { engine, options, storage } = call.service
  const { id: app, keyId } = call.caller
  const isNew = call.request.method === 'POST'
  // Older pieces are swept.
  const lifetimeMs = Math.min(engine.options.retention.unusedUploadsMs, options.links.inputSeconds * 1000)
  const parts = new UploadParts({ blobs: engine.blobs, storage, app, lifetimeMs })
  let usedId = id
  let refusal: Problem | undefined
  const server = new Server({
    path: resumablePath,
    datastore: parts,
    // Those who know the id of another application's upload cannot end its requests.
    locker: { newLock: (asked) => locks.newLock(`${app}/${asked}`) },
    lockDrainTimeout: drainMs,
    maxSize: engine.options.limits.maxFileBytes,
    disableTerminationForFinishedUploads: true,
    namingFunction: () => (usedId = randomUUID()),
    getFileIdFromRequest: () => id,
    generateUrl: (_request, { id: made }) => `${call.baseUrl}${resumablePath}/${made}`,
    onUploadCreate: async (_request, { id: made, size = 0 }) => {
      await storage.refuseFull(app)
      // Begun and ended at once, to see whether it fits.
      const slot = await storage.begin(app, uploadKey(app, made), size)
      slot.end(false)
      return {}
    },
    onUploadFinish: async (_request, { id: made, size = 0 }) => {
      await parts.complete(made, size)
      return {}
    },
    onResponseError({ headers }, error) {
      const { maxFileBytes } = engine.options.limits
      // The library has one answer for both mistakes.
      const isTooLarge = Number(headers.get('upload-length')) > maxFileBytes
      refusal = asProblem(error, isTooLarge ? largerThan(maxFileBytes) : longerThanAnnounced)
      return { status_code: refusal.status, body: refusal.message }
    },
  })
  const response = await server.handleWeb(protocolRequest(call, resumablePath))
  // The service has its own rules for pages of other origins.
  const headers = Object.fromEntries(
    [...response.headers].filter(([name]) => !name.startsWith('access-control-') && !name.startsWith('content-')),
  )
  if (response.status >= 400) {
    // Clients that keep sending would not see the answer.
    await call.body.discard(options.limits.discardBytes)
    // The library calls another version a malformed header.
    const status = call.request.headers.get('tus-resumable') === '1.0.0' ? response.status : 412
    throw protocolProblem(status, headers, refusal, await response.text())
  }
  if (usedId !== undefined && response.status < 300 && (isNew || call.request.method === 'HEAD')) {
    const { inputSeconds: seconds } = options.links
    headers[downloadUrlHeader] = storageLink(call, { method: 'GET', key: uploadKey(app, usedId), app, keyId, seconds })
  }
  headers['cache-control'] = 'no-store'
  return { status: response.status, headers, body: null }
}

/** The error for a request that the protocol's library refused: our reason, if there is one, else the library's. */
function protocolProblem(
  status: number,
  headers: Record<string, string>,
  refusal: Problem | undefined,
  said: string,
): Problem {
  return new Problem(refusal?.code ?? codeOf(status), refusal?.message ?? brokenProtocol(said), {
    reason: refusal?.reason,
    headers: { ...headers, ...refusal?.headers, ...(status === 412 ? { 'tus-version': '1.0.0' } : {}) },
    cause: refusal?.cause,
  })
}

/** The request as the protocol's library reads it, with the service's limits on how its body may arrive. */
function protocolRequest(call: KeyedCall, resumablePath: string): Request {
  const { method, headers: given } = call.request
  const headers = new Headers()
  for (const name of passedOn) {
    const value = given.get(name)
    // tuspy sends empty metadata, which the library would refuse.
    if (value) headers.set(name, value)
  }
  const url = `http://localhost${resumablePath}/upload`
  if (method !== 'POST' && method !== 'PATCH')
    return new Request(url, { method: method === 'GET' ? 'HEAD' : method, headers })
  const init: RequestInit & { duplex: 'half' } = {
    method,
    headers,
    body: ReadableStream.from(untilCut(call)),
    duplex: 'half',
  }
  return new Request(url, init)
}

const passedOn = [
  'tus-resumable',
  'upload-length',
  'upload-offset',
  'upload-defer-length',
  'upload-metadata',
  'upload-concat',
  'content-type',
  'content-length',
]

/** A broken connection, or the end of the key, ends the body without failing it, so that the bytes received are kept. */
async function* untilCut(call: KeyedCall): AsyncGenerator<Uint8Array, void, undefined> {
  const permission = permit(call)
  try {
    yield* call.body.fileChunks(permission.signal)
  } catch (error) {
    call.service.engine.options.logger.debug(
      { requestId: call.requestId, err: error },
      'An upload was cut; it can go on.',
    )
  } finally {
    permission.release()
  }
}

const largerThan = (maxBytes: number) =>
  `The file is larger than the limit of ${maxBytes} bytes. Send a smaller or compressed file.`
const longerThanAnnounced =
  'More bytes came than the upload has left of its Upload-Length. Ask for its offset and send the rest of the file, ' +
  'or start a new upload with the length of the whole file.'

/** Throws or returns our own error as it is; explains an error of the library, which is a status and a text. */
function asProblem(error: Error | { status_code: number; body: string }, tooLarge: string): Problem {
  if (error instanceof Problem) return error
  if (error instanceof Error) throw error
  const { status_code: status, body } = error
  if (status === 413) return new Problem('TOO_LARGE', tooLarge, { reason: 'too_large' })
  if (status === 404) return noSuchUpload()
  if (status === 410) return uploadOver()
  if (status === 409) return otherOffset()
  return new Problem(codeOf(status), brokenProtocol(body))
}

function brokenProtocol(said: string): string {
  const why = said.trim().replace(/\.$/, '')
  return `The request is not one of tus 1.0: ${why}. Use a client of https://tus.io, without further extensions.`
}

function codeOf(status: number): ProblemCode {
  const codes = Object.keys(problemTypes) as ProblemCode[]
  // 501: an extension that is not offered.
  if (status === 403 || status === 501) return 'BAD_INPUT'
  return codes.find((code) => problemTypes[code].status === status) ?? (status < 500 ? 'BAD_INPUT' : 'INTERNAL_ERROR')
}
