/** Codes that a job carries in `error.code` when it ends FAILED. */
export type JobErrorCode = 'BAD_INPUT' | 'TIMEOUT' | 'INTERNAL_ERROR' | 'CANCELED'

/** Codes of errors that the library throws at its host. */
export type EngineErrorCode =
  | 'INVALID_OPTIONS'
  | 'INVALID_PARAMS'
  | 'UNKNOWN_WORKFLOW'
  | 'WORKFLOW_UNAVAILABLE'
  | 'UPLOAD_REFUSED'
  | 'NOT_FOUND'
  | 'QUEUE_FULL'
  | 'RATE_LIMITED'
  | 'QUOTA_EXCEEDED'
  | 'NOT_FAILED'
  | 'CONFLICT'
  | 'INPUT_EXPIRED'
  | 'DRAINING'
  | 'IDEMPOTENCY_CONFLICT'
  | 'ALREADY_EXISTS'
  | 'TOO_LARGE'
  | 'SHUTTING_DOWN'
  | 'PREEMPTED'
  | 'CLOSE_FAILED'
  | 'LEASE_LOST'
  | 'STORE_UNAVAILABLE'
  | 'MISSING_DEPENDENCY'
  | 'MODEL_UNAVAILABLE'
  | 'RUNNER_UNAVAILABLE'

export type ErrorCode = JobErrorCode | EngineErrorCode

/**
 * Why a job ended with `BAD_INPUT` (or `copy_failed` and `worker_lost` with `INTERNAL_ERROR`, `deadline` with
 * `TIMEOUT`). `download_http_<status>` carries the status that the file's server answered.
 */
export type FailureReason =
  | 'download_failed'
  | `download_http_${number}`
  | 'blocked_address'
  | 'too_large'
  | 'too_long'
  | 'unsupported_format'
  | 'decode_failed'
  | 'no_audio'
  | 'upload_missing'
  | 'copy_failed'
  | 'worker_lost'
  | 'deadline'

export interface StemworkErrorOptions {
  /** Machine-readable cause within the code. */
  reason?: FailureReason
  /** Whether the same request can succeed later without a change by the client. Default: false. */
  retryable?: boolean
  /** Facts for the operator and for field-level messages; never secrets, paths or signed URLs. */
  details?: Record<string, unknown>
  cause?: unknown
}

const brand = Symbol.for('stemwork.error')

/**
 * The one error class of the library. `message` says what happened, what was expected and what to do, in words that may
 * be shown to a client; the technical cause is in `cause`.
 */
export class StemworkError extends Error {
  override readonly name = 'StemworkError'
  readonly [brand] = true
  readonly code: ErrorCode
  readonly reason: FailureReason | undefined
  readonly retryable: boolean
  readonly details: Record<string, unknown>

  constructor(code: ErrorCode, message: string, options: StemworkErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.reason = options.reason
    this.retryable = options.retryable ?? false
    this.details = options.details ?? {}
  }

  /** True for an error of this library, also when it comes from a second installed copy of the package. */
  static is(error: unknown): error is StemworkError {
    return typeof error === 'object' && error !== null && (error as Record<symbol, unknown>)[brand] === true
  }
}

/** Node.js has no name for a full quota, only the system's number: of Linux, or of macOS. */
const quotaCodes = ['Unknown system error -122', 'Unknown system error -69']

/** The code of an error of the system or of a driver, such as `ENOSPC`. */
export function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'an unknown error'
  return quotaCodes.includes(code) ? 'EDQUOT' : code
}

/** Shorthand for the most common failure of a job: the client's file cannot be used. */
export function badInput(reason: FailureReason, message: string, cause?: unknown): StemworkError {
  return new StemworkError('BAD_INPUT', message, { reason, cause })
}

export function invalidOptions(message: string, cause?: unknown): StemworkError {
  return new StemworkError('INVALID_OPTIONS', message, { cause })
}

export function storeUnavailable(message: string, options?: StemworkErrorOptions): StemworkError {
  return new StemworkError('STORE_UNAVAILABLE', message, options)
}

/**
 * The error that a client sees in place of an unexpected one. Its message reveals nothing of the cause, which goes to
 * the operator's log.
 */
export function internalError(cause: unknown, details: Record<string, unknown> = {}): StemworkError {
  return new StemworkError(
    'INTERNAL_ERROR',
    'The job failed because of an error inside the service. Submit it again; if it fails again, tell the operator ' +
      'the job id.',
    { retryable: true, details, cause },
  )
}

/**
 * Checks a required option, which callers in JavaScript may omit. The message shows the expected call and the names of
 * the given options, but not their values, which may be secret.
 *
 * @throws StemworkError `INVALID_OPTIONS` unless the option is given
 */
export function requireOption(isGiven: boolean, options: unknown, call: string, what: string): void {
  if (isGiven) return
  const names = typeof options === 'object' && options !== null ? Object.keys(options).join(', ') : typeof options
  const given = options === undefined ? 'nothing' : `{ ${names} }`
  throw new StemworkError('INVALID_OPTIONS', `${call} needs ${what}. It was called with ${given}.`)
}

/**
 * Refuses times that are no numbers: NaN, as of a variable that is not set, would count as never, and timers do not
 * wait for it.
 *
 * @throws StemworkError `INVALID_OPTIONS`
 */
export function requireTimes(
  call: string,
  times: Record<string, number | null | undefined>,
  least = -Infinity,
  most = Infinity,
): void {
  for (const [name, ms] of Object.entries(times)) {
    if (ms === undefined || ms === null || (typeof ms === 'number' && ms >= least && ms <= most)) continue
    const range = least === -Infinity ? '' : ` from ${least} to ${most}`
    throw invalidOptions(`${call}: ${name} must be a number of milliseconds${range}, not ${ms}.`)
  }
}

const setupCodes: readonly ErrorCode[] = [
  'INVALID_OPTIONS',
  'MISSING_DEPENDENCY',
  'MODEL_UNAVAILABLE',
  'RUNNER_UNAVAILABLE',
  'UNKNOWN_WORKFLOW',
]

/** Whether only a change of the host's setup can help, and neither a retry nor another file. */
export function isSetupError(error: unknown): error is StemworkError {
  return StemworkError.is(error) && setupCodes.includes(error.code) && !error.retryable
}

/** The error that a client sees for a setup error. */
export function notSetUp(cause: StemworkError): StemworkError {
  return new StemworkError(
    'INTERNAL_ERROR',
    'The service is not set up to run this job. Submitting it again does not help until its operator has fixed ' +
      'this. Tell the operator the job id.',
    { cause },
  )
}

/** The client's file is over the limit. */
export function tooLarge(maxBytes: number): StemworkError {
  const message = `The file is larger than the limit of ${maxBytes} bytes. Send a smaller or compressed file.`
  return new StemworkError('BAD_INPUT', message, { reason: 'too_large', details: { maxBytes } })
}

/** A run was preempted by another application's job, and is resumed later. */
export function preempted(): StemworkError {
  const message = 'The job gave way to one of another application. Its work is kept, and it resumes in its turn.'
  return new StemworkError('PREEMPTED', message, { retryable: true })
}

/** A part of the engine refuses or interrupts work because the engine is closing. */
export function shuttingDown(): StemworkError {
  const message =
    'The service is shutting down. Accepted jobs continue on another worker or after the restart. Try again in a ' +
    'moment.'
  return new StemworkError('SHUTTING_DOWN', message, { retryable: true })
}

/** The type that the compiler shows where an old name is used. */
export type Renamed<Now extends string> = `Renamed: ${Now}`

/** Replaces a renamed function: when called, throws an error that gives the new name. */
export function renamed<const Now extends string>(name: string, now: Now): Renamed<Now> {
  const refuse = () => {
    throw new StemworkError('INVALID_OPTIONS', `${name} was renamed. Use ${now}.`)
  }
  // Typed as a string, so that a call does not compile; at run time, a function that throws.
  return refuse as unknown as Renamed<Now>
}

/** Whether the host has installed a package that only some of its options need. */
export function hasPackage(name: string): boolean {
  try {
    import.meta.resolve(name)
    return true
  } catch {
    return false
  }
}

/** @throws StemworkError `MISSING_DEPENDENCY` if the package that the option needs is not installed */
export function requirePackage(option: string, name: string): void {
  if (hasPackage(name)) return
  const message = `${option} needs the package ${name}, which is not installed. Run: npm install ${name}`
  throw new StemworkError('MISSING_DEPENDENCY', message)
}
