import type { LookupAddress } from 'node:dns'
import { once } from 'node:events'
import { request as httpRequest, type ClientRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { StemworkError } from '../errors.js'
import { targetOf, vetAddresses, type AddressPolicy, type Target } from './address-guard.js'
import { allowList } from './allow-list.js'
import { type Deadline, defaultTimeouts, type FetchTimeouts, startDeadline, TooSlowError } from './deadline.js'
import { dial, type Dial } from './dial.js'
import { blocked, downloadFailed } from './fetch-failure.js'
import { resolvePublicName, resolveWithSystem } from './resolve-name.js'
import { checkHeaders, responseBody } from './response-body.js'
import { untilAborted } from '../workflow/until-aborted.js'

export interface GuardedFetchOptions {
  /** Default: `GET`. */
  method?: string
  /** By lower-case name. Not sent to another origin after a redirect. */
  headers?: Record<string, string>
  /** Without a `content-length` header, a stream is sent chunked. */
  body?: Uint8Array | Readable
  signal?: AbortSignal
  /** Most bytes of the response body, after decoding. */
  maxBytes: number
  policy: AddressPolicy
  timeouts?: Partial<FetchTimeouts>
  /**
   * Only GET and HEAD follow redirects; with 0, and for other methods, the redirect itself is the response. Default: 3.
   */
  maxRedirects?: number
  /** Opens connections; tests replace it. */
  dial?: Dial
}

export interface GuardedResponse {
  /** Any status; the caller has to check it. */
  status: number
  headers: IncomingHttpHeaders
  /** Read the body to its end, leave the loop, or call `cancel`: each frees the connection. */
  body: AsyncIterable<Uint8Array>
  /** URL of the response, after redirects. */
  url: string
  cancel(): void
}

/** Servers send a few before the answer (103); thousands in each packet would occupy the event loop. */
const mostInterim = 100
const redirectStatuses = [301, 302, 303, 307, 308]

/**
 * Fetches a URL that a client gave; the library reaches such URLs in no other way. The URL and every address of its
 * host must be open by `policy`, only vetted addresses are used, and each redirect passes the same check. Sends no
 * cookies and no credentials.
 *
 * @throws StemworkError `BAD_INPUT` with reason `blocked_address`, `download_failed` or `too_large`; refused, blocked
 * and timed out share one message unless `policy.detail` is set
 * @throws the signal's reason when it fires
 */
export async function guardedFetch(address: string | URL, options: GuardedFetchOptions): Promise<GuardedResponse> {
  const { method = 'GET', policy, maxBytes, signal, maxRedirects = 3 } = options
  const timeouts = { ...defaultTimeouts, ...options.timeouts }
  const deadline = startDeadline(signal, timeouts.totalMs)
  const failure = (error: unknown) => failureOf(error, deadline, signal, policy)
  let request: ClientRequest | undefined
  const release = () => {
    deadline.end()
    request?.destroy()
  }

  try {
    let target = targetOf(address, policy)
    for (let redirects = 0; ; redirects++) {
      const sameOrigin = target.url.origin === new URL(address).origin
      const opening = { method, headers: sameOrigin ? options.headers : undefined, dial: options.dial ?? dial, policy }
      request = await open(target, opening, timeouts, deadline)
      const response = await answerOf(request, redirects === 0 ? options.body : undefined, timeouts, deadline)
      const location = redirectOf(response, method, maxRedirects)
      if (location === undefined) {
        // For other methods, only the status matters.
        if (method === 'GET') checkHeaders(response, maxBytes, policy)
        const body = responseBody(response, { maxBytes, timeouts, deadline, failure, release })
        return {
          status: response.statusCode ?? 0,
          headers: response.headers,
          body,
          url: target.url.href,
          cancel: release,
        }
      }
      request.destroy()
      if (redirects === maxRedirects)
        throw downloadFailed(new Error(`more than ${maxRedirects} redirects`), policy, { retryable: false })
      target = redirectTarget(location, target, policy)
    }
  } catch (error) {
    release()
    if (options.body && 'destroy' in options.body) options.body.destroy()
    throw failure(error)
  }
}

/** The redirect's location; `undefined` if the response is returned to the caller. */
function redirectOf(response: IncomingMessage, method: string, maxRedirects: number): string | undefined {
  const isFollowed = maxRedirects > 0 && (method === 'GET' || method === 'HEAD')
  return isFollowed && redirectStatuses.includes(response.statusCode ?? 0) ? response.headers.location : undefined
}

function redirectTarget(location: string, from: Target, policy: AddressPolicy): Target {
  const next = targetOf(URL.canParse(location, from.url.href) ? new URL(location, from.url) : location, policy)
  if (from.secure && !next.secure) throw blocked('the redirect leads from https to http', policy)
  return next
}

interface Opening {
  method: string
  headers: Record<string, string> | undefined
  dial: Dial
  policy: AddressPolicy
}

async function open(
  target: Target,
  opening: Opening,
  timeouts: FetchTimeouts,
  deadline: Deadline,
): Promise<ClientRequest> {
  const stopConnect = deadline.start(timeouts.connectMs, 'a connection')
  try {
    const vetted = await vettedAddresses(target, opening.policy, deadline)
    const connection = await opening.dial(target, vetted, deadline.signal)
    const { url, host } = target
    const request = httpRequest({
      method: opening.method,
      path: url.pathname + url.search,
      headers: {
        'user-agent': 'stemwork',
        accept: '*/*',
        'accept-encoding': 'identity',
        ...opening.headers,
        host: url.host.replace(url.hostname, target.literal ? url.hostname : host),
        connection: 'close',
      },
      createConnection: () => connection,
    })
    // Errors surface where the response and its body are awaited; an unawaited one must not crash the host.
    request.on('error', () => {})
    let interim = 0
    request.on('information', () => {
      if (++interim > mostInterim) request.destroy(new TooSlowError(`more than ${mostInterim} interim answers`))
    })
    deadline.signal.addEventListener('abort', () => request.destroy(), { once: true })
    return request
  } finally {
    stopConnect()
  }
}

async function vettedAddresses(target: Target, policy: AddressPolicy, deadline: Deadline) {
  if (target.literal) return vetAddresses(target, [{ address: target.host, family: 0 }], policy)
  return vetAddresses(
    target,
    await untilAborted(resolve(target.host, policy, deadline.signal), deadline.signal),
    policy,
  )
}

function resolve(host: string, policy: AddressPolicy, signal: AbortSignal): Promise<LookupAddress[]> {
  if (policy.resolver) return policy.resolver(host, signal)
  const isOperators = policy.allowPrivate === true || allowList(policy.allow ?? []).lists(host)
  // Loopback by definition (RFC 6761, section 6.3), without a name server.
  const isLocal = host === 'localhost' || host.endsWith('.localhost')
  return isOperators || isLocal ? resolveWithSystem(host) : resolvePublicName(host, signal)
}

async function answerOf(
  request: ClientRequest,
  body: Uint8Array | Readable | undefined,
  timeouts: FetchTimeouts,
  deadline: Deadline,
): Promise<IncomingMessage> {
  const answered: Promise<IncomingMessage> = once(request, 'response').then(([response]) => response)
  const sentThenAnswered = async () => {
    await send(request, body, timeouts, deadline)
    const stopFirstByte = deadline.start(timeouts.firstByteMs, 'an answer')
    return await answered.finally(stopFirstByte)
  }
  // A server may respond before it has read the whole body.
  const response = await untilAborted(Promise.race([answered, sentThenAnswered()]), deadline.signal)
  response.on('error', () => {})
  return response
}

async function send(
  request: ClientRequest,
  body: Uint8Array | Readable | undefined,
  { idleMs }: FetchTimeouts,
  deadline: Deadline,
): Promise<void> {
  if (body === undefined || body instanceof Uint8Array) return void request.end(body)
  const closing = new AbortController()
  request.once('close', () => closing.abort())
  for await (const piece of body) {
    if (request.write(piece)) continue
    const stopIdle = deadline.start(idleMs, 'the server to read')
    await once(request, 'drain', { signal: closing.signal }).finally(stopIdle)
  }
  request.end()
}

function failureOf(
  error: unknown,
  deadline: Deadline,
  caller: AbortSignal | undefined,
  policy: AddressPolicy,
): unknown {
  if (caller?.aborted) return caller.reason
  if (StemworkError.is(error)) return error
  const cause: unknown = deadline.signal.aborted ? deadline.signal.reason : error
  return downloadFailed(cause, policy, { retryable: !isPermanent(cause) })
}

/**
 * Failures that another attempt would repeat: the name does not exist, the certificate does not match, the server is
 * too slow.
 */
function isPermanent(cause: unknown): boolean {
  if (cause instanceof TooSlowError) return true
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  return /^(ENOTFOUND|ENODATA|ERR_TLS_CERT|CERT_|UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|ERR_UNESCAPED|HPE_|Z_)/.test(code)
}
