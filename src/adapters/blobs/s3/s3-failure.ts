import { StemworkError, storeUnavailable } from '../../../core/engine/errors.js'

/** Name and status of a response of the S3 server; only a name for other errors. */
export function failureOf(error: unknown) {
  const { name, $metadata } = (error ?? {}) as { name?: unknown; $metadata?: { httpStatusCode?: number } }
  return { name: typeof name === 'string' ? name : '', status: $metadata?.httpStatusCode }
}

/** Whether there is no such object. A missing bucket answers with another name, except to HEAD. */
export function isAbsent(error: unknown): boolean {
  const { name, status } = failureOf(error)
  return status === 404 && (name === 'NoSuchKey' || name === 'NotFound')
}

/** Whether there is no such multipart upload: it was completed or aborted. */
export function isAbsentUpload(error: unknown): boolean {
  return failureOf(error).name === 'NoSuchUpload'
}

/** Whether the server does not implement the request or one of its headers. */
export function isNotImplemented(error: unknown): boolean {
  const { name, status } = failureOf(error)
  return status === 501 || status === 405 || name === 'NotImplemented' || name === 'MethodNotAllowed'
}

export function isRangeBeyondEnd(error: unknown): boolean {
  return failureOf(error).status === 416
}

/** Whether a write's condition did not hold, or another write of the key was in progress. */
export function isConditionFailure(error: unknown): boolean {
  const { status } = failureOf(error)
  return status === 412 || status === 409
}

export function unavailable(what: string, cause: unknown): StemworkError {
  if (StemworkError.is(cause)) return cause
  const { name, status } = failureOf(cause)
  const answer =
    status === undefined
      ? 'the S3 server could not be reached or broke off'
      : `the S3 server answered ${status} ${name}`
  return storeUnavailable(
    `${what}: ${answer}. Check the server, the bucket and the permissions of the credentials, then try again.`,
    { retryable: true, cause },
  )
}

/** Returns the server's answer. @throws StemworkError `STORE_UNAVAILABLE` that says what failed. */
export async function asked<Result>(failure: string, request: () => Promise<Result>): Promise<Result> {
  try {
    return await request()
  } catch (error) {
    throw unavailable(failure, error)
  }
}
