import { StemworkError } from '../errors.js'
import type { JobRecord } from './job.js'

/** Keys of the service's files in a blob store. They are made only here, from ids and checked names. */

export const resultsPrefix = 'results/'
export const uploadsPrefix = 'uploads/'
/** Key of the marker that names the job store to which the files belong. */
export const deploymentKey = 'deployment'
/** Prefix of the files that health checks write and remove. */
export const checksPrefix = 'checks/'

/** Prefix of a job's result files, of every attempt. */
export function jobResultsPrefix(jobId: string): string {
  return `${resultsPrefix}${jobId}/`
}

/** Prefix of one claim's result files. Its worker, even a superseded one, writes and removes nothing outside. */
export function attemptPrefix({ id, token, lease }: Pick<JobRecord, 'id' | 'token' | 'lease'>): string {
  return `${jobResultsPrefix(id)}${token}${lease?.nonce ? `-${lease.nonce}` : ''}/`
}

/** Key under which the peaks of a result file are kept after their first use. */
export function peaksKey(resultKey: string): string {
  return `${resultKey}.peaks`
}

export function uploadKey(app: string, ticketId: string): string {
  return `${uploadsPrefix}${app}/${ticketId}`
}

const localMark = 'local-'

/** Key of a local file that is kept as an upload without a ticket. */
export function localUploadKey(app: string, id: string): string {
  return uploadKey(app, localMark + id)
}

export function isOfTicket(uploadKey: string): boolean {
  return !uploadKey.slice(uploadKey.lastIndexOf('/') + 1).startsWith(localMark)
}

/** An empty blob that outlives an upload removed with its job, so that the ticket accepts no second file. */
export function usedTicketKey(uploadKey: string): string {
  return `${uploadKey}.used`
}

/** Job id, fencing token and nonce of a result's key; `undefined` for a key of another form. */
export function parseResultKey(key: string): { jobId: string; token: number; nonce: string } | undefined {
  const [, jobId, token, nonce = ''] = /^results\/([^/]+)\/(\d+)(?:-([^/]+))?\//.exec(key) ?? []
  return jobId === undefined ? undefined : { jobId, token: Number(token), nonce }
}

const segment = '(?!\\.{1,2}(?:/|$))[A-Za-z0-9._-]{1,200}'
const keyPattern = new RegExp(`^${segment}(?:/${segment})*$`)
const maxKeyLength = 900

/**
 * Returns the key if it has the form that every blob store accepts: 1 to 900 characters, segments of `[A-Za-z0-9._-]`
 * (at most 200, not `.` or `..`) joined by `/`.
 *
 * @throws StemworkError `INVALID_PARAMS`.
 */
export function checkBlobKey(key: string): string {
  if (key.length <= maxKeyLength && keyPattern.test(key)) return key
  throw new StemworkError(
    'INVALID_PARAMS',
    `${JSON.stringify(key.slice(0, 100))} is not a blob key. Expected segments of letters, digits, ".", "_" and ` +
      '"-" joined by "/".',
  )
}

/** Returns the prefix if it is a folder: a valid key and a `/`. @throws StemworkError `INVALID_PARAMS`. */
export function checkBlobPrefix(prefix: string): string {
  if (prefix.endsWith('/') && prefix.length <= maxKeyLength && keyPattern.test(prefix.slice(0, -1))) return prefix
  throw new StemworkError(
    'INVALID_PARAMS',
    `${JSON.stringify(prefix.slice(0, 100))} is not a prefix of blob keys. Expected a folder that ends in "/", for ` +
      'example "results/".',
  )
}
