import { type ErrorCode, StemworkError } from '../../core/engine/errors.js'
import type { FieldIssue } from '../../core/engine/job/field-issues.js'
import { type ApiAnswer, json } from './answer.js'

interface ProblemType {
  status: number
  title: string
}

/** Every code that an HTTP error can carry, with its status and title. */
export const problemTypes = {
  BAD_INPUT: { status: 400, title: 'The request is not valid' },
  UNAUTHORIZED: { status: 401, title: 'The request has no valid API key' },
  FORBIDDEN: { status: 403, title: 'The link is not valid' },
  NOT_FOUND: { status: 404, title: 'Not found' },
  METHOD_NOT_ALLOWED: { status: 405, title: 'The method is not allowed here' },
  TIMEOUT: { status: 408, title: 'The request took too long' },
  CONFLICT: { status: 409, title: 'The request conflicts with an earlier one' },
  GONE: { status: 410, title: 'No longer available' },
  PRECONDITION_FAILED: { status: 412, title: 'The file has changed' },
  TOO_LARGE: { status: 413, title: 'The request is too large' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, title: 'The content type is not supported' },
  RANGE_NOT_SATISFIABLE: { status: 416, title: 'The file has no such range' },
  EXPECTATION_FAILED: { status: 417, title: 'The expectation cannot be met' },
  UNKNOWN_WORKFLOW: { status: 422, title: 'There is no such workflow' },
  UPLOAD_REFUSED: { status: 422, title: 'The uploaded file cannot be used' },
  IDEMPOTENCY_CONFLICT: { status: 422, title: 'The idempotency key was used for another request' },
  RATE_LIMITED: { status: 429, title: 'Too many requests' },
  STORAGE_FULL: { status: 429, title: 'The storage of the application is full' },
  QUOTA_EXCEEDED: { status: 429, title: 'The quota of the application is used up' },
  QUEUE_FULL: { status: 429, title: 'Too many jobs are waiting' },
  UPGRADE_REQUIRED: { status: 426, title: 'The address is a WebSocket' },
  HEADERS_TOO_LARGE: { status: 431, title: 'The request headers are too large' },
  INTERNAL_ERROR: { status: 500, title: 'The service failed' },
  WORKFLOW_UNAVAILABLE: { status: 503, title: 'The workflow cannot run at the moment' },
  DRAINING: { status: 503, title: 'No new jobs are accepted at the moment' },
  SHUTTING_DOWN: { status: 503, title: 'The service is shutting down' },
  STORE_UNAVAILABLE: { status: 503, title: 'The storage of the service cannot be reached' },
} satisfies Record<string, ProblemType>

export type ProblemCode = keyof typeof problemTypes

interface ProblemOptions {
  issues?: FieldIssue[]
  reason?: string
  headers?: Record<string, string>
  cause?: unknown
}

/** An HTTP error inside the handler. Hosts only see responses. */
export class Problem extends Error {
  readonly code: ProblemCode
  readonly issues: FieldIssue[] | undefined
  readonly reason: string | undefined
  readonly headers: Record<string, string>

  /** @param message says what happened, what was expected and what to do; shown to the client. */
  constructor(code: ProblemCode, message: string, options: ProblemOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.issues = options.issues
    this.reason = options.reason
    this.headers = options.headers ?? {}
  }

  get status(): number {
    return problemTypes[this.code].status
  }
}

export function notFound(message: string): Problem {
  return new Problem('NOT_FOUND', message)
}

export function conflict(message: string): Problem {
  return new Problem('CONFLICT', message)
}

/** @param seconds after which the client may try again */
export function rateLimited(message: string, seconds: number): Problem {
  return new Problem('RATE_LIMITED', message, { headers: { 'retry-after': String(seconds) } })
}

/** For a field whose value only the route's handler can refuse. */
export function invalidField(path: string, message: string): Problem {
  return new Problem('BAD_INPUT', `The request is not valid. ${path}: ${message}.`, { issues: [{ path, message }] })
}

/** The errors of the engine that clients see, with their message. All others are hidden. */
const shown: Partial<Record<ErrorCode, (error: StemworkError) => [ProblemCode, ProblemOptions?]>> = {
  INVALID_PARAMS: ({ details }) => ['BAD_INPUT', { issues: fieldIssues(details.issues) }],
  UNKNOWN_WORKFLOW: () => ['UNKNOWN_WORKFLOW'],
  IDEMPOTENCY_CONFLICT: () => ['IDEMPOTENCY_CONFLICT'],
  UPLOAD_REFUSED: ({ reason }) => ['UPLOAD_REFUSED', { reason }],
  QUOTA_EXCEEDED: ({ details }) => [
    'QUOTA_EXCEEDED',
    { reason: text(details.quota), headers: { 'retry-after': String(secondsUntil(text(details.resetsAt))) } },
  ],
  NOT_FAILED: () => ['CONFLICT'],
  CONFLICT: () => ['CONFLICT'],
  INPUT_EXPIRED: () => ['GONE'],
  QUEUE_FULL: () => ['QUEUE_FULL', { headers: { 'retry-after': '10' } }],
  RATE_LIMITED: () => ['RATE_LIMITED', { headers: { 'retry-after': '5' } }],
  WORKFLOW_UNAVAILABLE: () => ['WORKFLOW_UNAVAILABLE', { headers: { 'retry-after': '30' } }],
  DRAINING: () => ['DRAINING', { headers: { 'retry-after': '60' } }],
  SHUTTING_DOWN: () => ['SHUTTING_DOWN', { headers: { 'retry-after': '10' } }],
  BAD_INPUT: ({ reason }) => ['BAD_INPUT', { reason }],
  NOT_FOUND: () => ['NOT_FOUND'],
  TOO_LARGE: () => ['TOO_LARGE', { reason: 'too_large' }],
}

/** The error that a client sees for anything that a handler threw. The text of foreign errors is hidden. */
export function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error
  if (!StemworkError.is(error)) return internal(error)
  // A permanent failure (a damaged file, missing tables) is no reason to retry.
  if (error.code === 'STORE_UNAVAILABLE' && error.retryable) return unavailable(error)
  const [code, options] = shown[error.code]?.(error) ?? []
  return code === undefined ? internal(error) : new Problem(code, error.message, { ...options, cause: error })
}

/**
 * The error as a response: JSON with a non-empty `message`, which is all that existing clients read; with the members
 * and media type of RFC 9457 if the client accepts them.
 */
export function problemAnswer(problem: Problem, request: { accept: string | null; requestId: string }): ApiAnswer {
  const { title, status } = problemTypes[problem.code]
  const body = {
    code: problem.code,
    title,
    message: problem.message,
    status,
    ...(problem.reason === undefined ? {} : { reason: problem.reason }),
    ...(problem.issues === undefined ? {} : { errors: problem.issues }),
    requestId: request.requestId,
  }
  const { headers } = problem
  if (!request.accept?.includes('application/problem+json')) return json(body, { status, headers })
  const type = `urn:stemwork:problem:${problem.code.toLowerCase().replaceAll('_', '-')}`
  return json(
    { type, ...body, detail: problem.message, instance: `urn:request:${request.requestId}` },
    { status, headers: { ...headers, 'content-type': 'application/problem+json' } },
  )
}

/** Without the error's own text, which is for operators. */
function unavailable(cause: unknown): Problem {
  return new Problem(
    'STORE_UNAVAILABLE',
    'The service cannot reach its storage at the moment; whether the request was carried out is not known. Try ' +
      'again after the time in Retry-After, with the same Idempotency-Key if a job is created.',
    { headers: { 'retry-after': '10' }, cause },
  )
}

function internal(cause: unknown): Problem {
  return new Problem(
    'INTERNAL_ERROR',
    'The request failed because of an error inside the service. Try again; if it fails again, tell the operator ' +
      'the request id.',
    { cause },
  )
}

function fieldIssues(value: unknown): FieldIssue[] {
  if (!Array.isArray(value)) return []
  return value.map((issue: unknown) => {
    const { path, message } = (issue ?? {}) as Partial<Record<keyof FieldIssue, unknown>>
    return { path: text(path), message: text(message) }
  })
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** At least 1. */
function secondsUntil(time: string): number {
  return Math.max(1, Math.ceil((Date.parse(time) - Date.now()) / 1000) || 1)
}
