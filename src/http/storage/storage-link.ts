import type { ApiAnswer } from '../routing/answer.js'
import type { Call } from '../routing/call.js'
import { notFound, Problem } from '../routing/problem.js'
import type { Grant } from '../auth/signed-url.js'

/** Path below the base path under which files are read and written by signed links. */
export const storagePath = '/storage/'

const keyForm = /^(uploads|results)(\/(?!\.+(\/|$))[A-Za-z0-9._-]+)+$/

/**
 * The blob key that a storage path names. @throws Problem `NOT_FOUND` for anything that the service does not make
 * itself.
 */
export function storageKey(path: string): string {
  if (keyForm.test(path) && path.length < 1024) return path
  throw notFound('There is no such file.')
}

/** An absolute signed link; the path ends in the key, so that it ends in the file's name. */
export function storageLink(
  call: Call,
  grant: Pick<Grant, 'method' | 'key' | 'app' | 'keyId' | 'fileName'> & { seconds: number; maxBytes?: number },
): string {
  const { method, key, app, keyId, fileName, seconds, maxBytes = 0 } = grant
  const expiresAt = Math.floor(Date.now() / 1000) + seconds
  const query = call.service.signer.sign({ method, key, app, keyId, fileName, expiresAt, maxBytes })
  return `${call.baseUrl}${storagePath}${key}?${query.toString()}`
}

/** Returns the link's grant, even an expired one. @throws Problem `FORBIDDEN`, with one message for every cause. */
export function grantOf(call: Call, method: Grant['method'], key: string): Grant {
  const grant = call.service.signer.verify(method, key, call.search)
  if (grant) return grant
  const message = 'The signature of this link is not valid. Use the link exactly as the service gave it.'
  throw new Problem('FORBIDDEN', message)
}

/** Answers in the turn of the application that the link was made for. @throws as `grantOf` */
export async function inTurnOfLink(
  call: Call,
  method: Grant['method'],
  key: string,
  answer: (grant: Grant) => Promise<ApiAnswer>,
): Promise<ApiAnswer> {
  const grant = grantOf(call, method, key)
  const endTurn = await call.service.turns.next(grant.app)
  // No time is charged: most of it is spent waiting for files.
  return await answer(grant).finally(() => endTurn(0))
}

/** @throws Problem `FORBIDDEN` if the API key that asked for the link has ended. */
export async function refuseEndedKey({ keyId }: Grant, call: Call): Promise<void> {
  if (keyId === undefined) return
  const key = await call.service.engine.applications.getKey(keyId)
  if (key && (key.expiresAt === null || key.expiresAt > Date.now())) return
  throw endedKey()
}

export function endedKey(): Problem {
  return new Problem(
    'FORBIDDEN',
    'The API key that this link was made with no longer works, and neither does the link. Get a new link with a ' +
      'valid key.',
  )
}

/** @throws Problem `FORBIDDEN`. */
export function refuseExpired(grant: Grant): void {
  if (grant.expiresAt * 1000 <= Date.now())
    throw new Problem('FORBIDDEN', 'This link has expired. Ask the service for a fresh one.')
}

/** A file that was uploaded to this service, as a download link names it. */
export interface OwnUpload {
  key: string
  /** Whether the link has expired. */
  expired: boolean
}

/**
 * Returns the file behind a download link of this service's own uploads; `undefined` for any other URL. Such a link is
 * resolved to the stored file without a request over the network.
 *
 * @throws Problem `UPLOAD_REFUSED` if the link is ours but altered, or made for another application.
 */
export function ownUpload(url: string, call: Call, app: string): OwnUpload | undefined {
  const target = URL.canParse(url) ? new URL(url) : undefined
  const at = target?.pathname.indexOf(`${storagePath}uploads/`) ?? -1
  if (!target || at < 0) return undefined
  const key = target.pathname.slice(at + storagePath.length)
  const grant = keyForm.test(key) ? call.service.signer.verify('GET', key, target.searchParams) : undefined
  // Only we can make a valid signature, so the host name it came under does not matter: the service may have several.
  if (!grant) {
    if (target.origin !== new URL(call.baseUrl).origin || !target.searchParams.has('signature')) return undefined
    throw refused(
      'The signature of this download link is not valid. Pass the downloadUrl exactly as GET /upload gave it.',
    )
  }
  if (grant.app !== app)
    throw refused('This download link was made for another application. Upload the file with your own key.')
  return { key, expired: grant.expiresAt * 1000 <= Date.now() }
}

function refused(message: string): Problem {
  return new Problem('UPLOAD_REFUSED', message)
}
