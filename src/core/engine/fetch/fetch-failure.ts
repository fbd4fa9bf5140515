import { StemworkError } from '../errors.js'

/** One text for refused, blocked and timed-out requests: more detail would let a client map the service's network. */
const unreachable =
  'The URL could not be fetched. It must be reachable from the public internet by http or https on the usual ports; ' +
  'check it and try again.'

interface Detail {
  detail?: boolean
}

/**
 * The error for a URL that the address guard refused for a reason visible in the URL itself.
 *
 * @param remedy shown with `detail`; otherwise, it is only in the operator's log
 */
export function blocked(what: string, { detail }: Detail, remedy?: string): StemworkError {
  const whole = remedy === undefined ? what : `${what}. ${remedy}`
  const cause = new Error(whole)
  return new StemworkError('BAD_INPUT', worded(whole, detail), { reason: 'blocked_address', cause })
}

/** The error for a fetch without a usable response. */
export function downloadFailed(
  cause: unknown,
  { detail }: Detail,
  { retryable }: { retryable: boolean },
): StemworkError {
  return new StemworkError('BAD_INPUT', worded(textOf(cause), detail), { reason: 'download_failed', retryable, cause })
}

/** The error for a status other than 200. Overload and server errors may be temporary; refusals are not. */
export function httpFailure(status: number): StemworkError {
  const retryable = status >= 500 || status === 429 || status === 408
  return new StemworkError(
    'BAD_INPUT',
    `The file's server answered ${status} instead of 200. Check that the URL is right, has not expired and needs ` +
      'no sign-in.',
    { reason: `download_http_${status}`, retryable, details: { status } },
  )
}

function worded(what: string, detail = false): string {
  return detail ? `${unreachable} (${what})` : unreachable
}

/** Text of a cause. Node's error for several failed connections has an empty message, so theirs are joined. */
function textOf(cause: unknown): string {
  if (cause instanceof AggregateError) return cause.errors.map(textOf).join('; ')
  return cause instanceof Error ? cause.message : String(cause)
}
