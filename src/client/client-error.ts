export interface ClientErrorFacts {
  code: string
  status: number
  requestId?: string
  reason?: string
  errors?: { path: string; message: string }[]
  retryAfterMs?: number
  cause?: unknown
}

const mark = 'stemwork.ClientError'

/** Whatever went wrong between this client and the service. An aborted signal is not one: its own reason is thrown. */
export class ClientError extends Error {
  override readonly name = 'ClientError'
  readonly mark = mark
  /** The service's code, or `NETWORK` when no answer came, `BAD_ANSWER` when the answer was not the service's. */
  readonly code: string
  /** HTTP status; 0 when no answer came. */
  readonly status: number
  /** Tell it to the operator of the service when you ask for help. */
  readonly requestId: string | undefined
  readonly reason: string | undefined
  /** The fields of the request that were refused. */
  readonly errors: readonly { path: string; message: string }[]
  /** How long the service asks to wait before the next try. */
  readonly retryAfterMs: number | undefined

  constructor(message: string, { code, status, requestId, reason, errors, retryAfterMs, cause }: ClientErrorFacts) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
    this.status = status
    this.requestId = requestId
    this.reason = reason
    this.errors = errors ?? []
    this.retryAfterMs = retryAfterMs
  }

  /** Like `instanceof`, and also true for errors of a second copy of this package. */
  static is(value: unknown): value is ClientError {
    return typeof value === 'object' && value !== null && (value as { mark?: unknown }).mark === mark
  }
}

/** @param address of what did not answer, as the program gave it */
export function networkError(cause: unknown, address?: string): ClientError {
  const why = reasonOf(cause)
  const what = `The service${address === undefined ? '' : ` at ${address}`} did not answer${why && ` (${why})`}.`
  return new ClientError(`${what} Check the address and the connection, then try again.`, {
    code: 'NETWORK',
    status: 0,
    cause,
  })
}

/** Node's `fetch` only says that it failed; the reason is in its cause. */
function reasonOf(error: unknown): string {
  const { cause } = (error ?? {}) as { cause?: unknown }
  const { message, code } = (cause ?? error ?? {}) as { message?: unknown; code?: unknown }
  return typeof message === 'string' && message !== '' ? message : typeof code === 'string' ? code : ''
}

export function badAnswer(status: number, what: string): ClientError {
  return new ClientError(`The response is not from a media-processing service: ${what}. Check the base address.`, {
    code: 'BAD_ANSWER',
    status,
  })
}

/** Whether the service may come back. What a callback of the host throws is no outage. */
export function isOutage(error: unknown): boolean {
  return ClientError.is(error) && (error.status === 0 || error.status === 429 || error.status >= 500)
}

/** The error for a request that was sent elsewhere. @param location null where a browser does not tell */
export function movedError(status: number, location: string | null): ClientError {
  const message = `The service redirects to ${location ?? 'another address'}, which is not followed. Use it as baseUrl.`
  return new ClientError(message, { code: 'BAD_ANSWER', status })
}

/** The error for an answer with a failing status. Answers of proxies have no JSON and are judged by their status. */
export function answerError(answer: {
  status: number
  body: string
  header(name: string): string | null
}): ClientError {
  const { status } = answer
  const problem = parsed(answer.body) ?? {}
  const text = (name: string) => (typeof problem[name] === 'string' && problem[name] !== '' ? problem[name] : undefined)
  return new ClientError(text('message') ?? statusWords(status), {
    code: text('code') ?? `HTTP_${status}`,
    status,
    requestId: text('requestId') ?? answer.header('x-request-id') ?? undefined,
    reason: text('reason'),
    errors: Array.isArray(problem.errors) ? (problem.errors as { path: string; message: string }[]) : undefined,
    retryAfterMs: retryAfter(answer.header('retry-after'), answer.header('date')),
  })
}

/** For proxies and other servers, which tell nothing but the status. */
function statusWords(status: number): string {
  if (status === 404)
    return 'There is no such service here (status 404). Check baseUrl: it ends with a path such as /v1.'
  if (status === 413)
    return (
      'A proxy in front of the service refuses requests of this size (status 413). Its operator can raise the limit; ' +
      'in nginx, it is client_max_body_size.'
    )
  if (status === 502 || status === 504)
    return `A proxy in front of the service got no answer from it (status ${status}). Try again in a minute.`
  return `The service answered with status ${status}.`
}

/** Undefined for what is not JSON, or neither an object nor a list. */
export function parsed(body: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(body)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

/** Seconds or a date, RFC 9110, 10.2.3, by the clock of the sender. */
function retryAfter(header: string | null, date: string | null): number | undefined {
  if (header === null) return undefined
  const now = Date.parse(date ?? '') || Date.now()
  const ms = /^\d+$/.test(header.trim()) ? Number(header) * 1000 : Date.parse(header) - now
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined
}
