import type { ApiRequest } from './api-request.js'
import type { Service } from './call.js'
import { Problem } from './problem.js'
import type { Sender } from '../options.js'

/** Scheme under which the page of a link sends the end of the link's address in `Authorization`. */
const scheme = 'job-link '
const tokenForm = /^(([0-9a-f-]{36})\/([0-9a-f-]{36}))\?(.+)$/

/** A link to one job, for people without a key. */
export interface LinkTarget {
  app: string
  jobId: string
  linkId: string
  /** Epoch milliseconds. */
  expiresAt: number
}

/** Returns the address of a page that opens the job. Browsers send the part after `#` to no server. */
export function linkAddress({ signer }: Pick<Service, 'signer'>, baseUrl: string, target: LinkTarget): string {
  const { app, jobId, linkId } = target
  const key = signedKey(`${jobId}/${linkId}`)
  const expiresAt = Math.floor(target.expiresAt / 1000)
  const query = signer.sign({ method: 'GET', key, app, expiresAt, maxBytes: 0 })
  return `${baseUrl}/console#job=${jobId}/${linkId}?${query.toString()}`
}

/** Whether the request comes with a link instead of a key. */
export function hasLink({ headers }: ApiRequest): boolean {
  return headers.get('authorization')?.startsWith(scheme) ?? false
}

/**
 * Returns the application of a link's job, for a request about that job.
 *
 * @throws Problem `FORBIDDEN` for a link that is forged, has expired or is of another job; `GONE` for a revoked one.
 */
export async function senderOfLink(request: ApiRequest, service: Service, jobId: string | undefined): Promise<Sender> {
  const token = request.headers.get('authorization')?.slice(scheme.length) ?? ''
  const [, path = '', ofJob = '', linkId = '', query] = tokenForm.exec(token) ?? []
  const grant = service.signer.verify('GET', signedKey(path), new URLSearchParams(query))
  if (!grant)
    throw new Problem('FORBIDDEN', 'This link is not complete. Open it exactly as it was sent, or ask for a new one.', {
      reason: 'link_incomplete',
    })
  if (ofJob !== jobId) throw new Problem('FORBIDDEN', 'This link opens another song, and only that one.')
  const expiresAt = grant.expiresAt * 1000
  if (expiresAt <= Date.now())
    throw new Problem('FORBIDDEN', 'This link has expired. Ask whoever sent it for a new one.', {
      reason: 'link_expired',
    })
  await refuseRevoked(service, jobId, linkId)
  return { id: grant.app, name: grant.app, link: { id: linkId, jobId: ofJob, expiresAt } }
}

/** @throws Problem `GONE`. */
export async function refuseRevoked({ engine }: Pick<Service, 'engine'>, jobId: string, linkId: string): Promise<void> {
  if (await engine.links.isOpen(jobId, linkId)) return
  throw new Problem('GONE', 'This link was revoked by whoever sent it. Ask for a new one.', { reason: 'link_revoked' })
}

function signedKey(path: string): string {
  return `links/${path}`
}
