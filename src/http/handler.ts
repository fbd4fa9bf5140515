import { randomBytes } from 'node:crypto'
import { invalidOptions } from '../core/engine/errors.js'
import { Shares } from '../core/engine/limits/shares.js'
import { assertInstalled } from '../core/engine/package-files.js'
import { type ApiAnswer, empty, type RouteAnswer } from './routing/answer.js'
import type { ApiRequest } from './routing/api-request.js'
import { authenticate, senderAhead } from './routing/authenticate.js'
import { Call, type RequestFacts, type Service } from './routing/call.js'
import { corsHeaders, preflightHeaders } from './routing/cors.js'
import { deprecationHeaders } from './routing/deprecation.js'
import { prefersHtml } from './routing/accept.js'
import type { HttpEngine } from './http-engine.js'
import { JobWatch } from './job-watch.js'
import { hasLink, senderOfLink } from './routing/job-link.js'
import { watchKeys } from './auth/key-watch.js'
import { QueryTurns } from './routing/query-turns.js'
import { LoopTurns } from './routing/loop-turns.js'
import { KnownKeys } from './auth/known-keys.js'
import { createMetrics } from './metrics.js'
import { type Handler, mountable } from './mounts/mountable.js'
import { type HandlerOptions, type HandlerSettings, resolveHandlerOptions, type Sender } from './options.js'
import { notFound, Problem, problemAnswer, toProblem } from './routing/problem.js'
import { rateLimiter } from './routing/rate-limit.js'
import { RequestBody } from './routing/request-body.js'
import { RequestIds } from './routing/request-ids.js'
import type { Match } from './routing/route-table.js'
import { createLocator, type Destination } from './routing/router.js'
import { allRoutes } from './routes.js'
import { notFoundPage } from './service/page.js'
import { ownerWithoutKey, wrongKeyCounts } from './routing/wrong-keys.js'
import { requireWebSockets } from './live/live-routes.js'
import { requireTus, resumablePath } from './storage/resumable-routes.js'
import { inPieces } from './routing/large-answer.js'
import { transferSlots } from './routing/transfer-slots.js'
import { inServerSpan } from './routing/server-span.js'
import { StorageUse } from './routing/storage-use.js'
import { KeySeal } from './auth/sealed-key.js'
import { UrlSigner } from './auth/signed-url.js'

/**
 * The whole HTTP interface as one function, for any framework. `stemwork/express`, `stemwork/node` and the others mount
 * it.
 *
 * @example
 * const handler = createHandler(engine, { basePath: '/v1', secrets: [linkSecret] })
 * const response = await handler(new Request('http://localhost/v1/application', { headers: { authorization: key } }))
 * @throws StemworkError `INVALID_OPTIONS` naming the option and what it expects; `MISSING_DEPENDENCY` for resumable
 * uploads without their package, and inside a bundle.
 */
export function createHandler(engine: HttpEngine, settings: HandlerSettings = {}): Handler {
  assertInstalled()
  if (typeof (engine as HttpEngine | undefined)?.submit !== 'function' || !engine.options) {
    throw invalidOptions('createHandler takes an engine, as createEngine() returns it.')
  }
  const options = resolveHandlerOptions(settings)
  const { logger } = engine.options
  checkParts(engine, options)
  const service = createService(engine, options)
  const locate = createLocator(allRoutes(options), options, logger)
  const requestIds = new RequestIds()
  const isKeyless = options.anonymous !== undefined && !options.trustProxy
  const traits = { takesUpgrades: options.live !== undefined, keyless: isKeyless ? options : undefined }

  return mountable(async (request, { mountPath = '', bodyRead = false, parsedBody }) => {
    const startedAt = performance.now()
    const requestId = incomingId(request.headers.get('x-request-id')) ?? requestIds.next()
    const body = new RequestBody(request, { bodyRead, parsedBody }, options.limits)
    const headers: Record<string, string> = { 'x-request-id': requestId }
    const facts: RequestFacts = { service, request, requestId, body, headers, operation: 'none' }
    let answer: ApiAnswer
    try {
      answer = await answerTo(facts, locate, mountPath)
      if (request.method === 'HEAD') answer.body = null
    } catch (error) {
      answer = problemAnswer(told(facts, error), { accept: request.headers.get('accept'), requestId })
    }
    const sent = answer.body
    if (sent !== null && typeof sent === 'object' && 'source' in sent)
      sent.onFailure = (error) => void told(facts, error)
    if (body.mayHaveRest && !(await body.settle())) headers.connection = 'close'
    for (const name of ['link', 'vary'] as const)
      if (answer.headers[name] && headers[name]) headers[name] = `${answer.headers[name]}, ${headers[name]}`
    Object.assign(answer.headers, headers)
    const tookMs = performance.now() - startedAt
    const { operation } = facts
    service.metrics?.observe(operation, answer.status, tookMs / 1000)
    logger.debug({ requestId, operation, status: answer.status, tookMs }, 'Request answered.')
    return answer
  }, traits)
}

/** @throws StemworkError for a missing part that the options need */
function checkParts({ blobs, options: { logger } }: HttpEngine, options: HandlerOptions): void {
  if (options.resumableUploads) requireTus()
  if (options.live) requireWebSockets()
  if (options.directStorage && !(blobs.signPut && blobs.signGet)) {
    throw invalidOptions(
      'directStorage needs a blob store that can sign links, such as S3. Leave it off with this one.',
    )
  }
  if (options.publicUrl && !/^(https:|http:\/\/(localhost|127\.0\.0\.1|\[::1\])[:/])/.test(options.publicUrl)) {
    logger.warn(
      { publicUrl: options.publicUrl },
      'publicUrl is not https. The client @music.ai/sdk downloads only results whose link begins with https://.',
    )
  }
}

function createService(engine: HttpEngine, options: HandlerOptions): Service {
  const secrets = options.secrets ?? [randomBytes(32).toString('hex')]
  return {
    engine,
    options,
    signer: new UrlSigner(secrets),
    seal: new KeySeal(secrets),
    watch: new JobWatch(engine, {
      total: options.limits.allWaitingRequests,
      perApplication: options.limits.waitingRequests,
    }),
    keys: new KnownKeys(),
    keyWatch: watchKeys(engine.applications),
    wrongKeys: wrongKeyCounts(options.rateLimits.wrongKeys),
    limiter: rateLimiter(options.rateLimits),
    turns: new LoopTurns(),
    queries: new QueryTurns(),
    downloads: transferSlots('files', {
      total: options.limits.allDownloads,
      perApplication: options.limits.downloads,
    }),
    largeAnswers: transferSlots('large answers'),
    largeBodies: transferSlots('large JSON bodies'),
    streams: options.live && new Shares({ total: options.live.streams }),
    storage: new StorageUse(engine, options.limits),
    metrics: options.metrics ? createMetrics(engine) : undefined,
  }
}

/** @throws Problem, or the route's error */
function answerTo(
  facts: RequestFacts,
  locate: ReturnType<typeof createLocator>,
  mountPath: string,
): Promise<ApiAnswer> | ApiAnswer {
  const { service, request, headers } = facts
  const { cors } = service.options
  if (cors) Object.assign(headers, corsHeaders(request, cors))
  const where = locate(request, mountPath)
  const { match, deprecated } = where
  if (deprecated) Object.assign(headers, deprecationHeaders(deprecated))
  if (match.kind === 'route') return answerOfRoute(facts, match, where)
  return inTurn(facts, undefined, () => answerWithoutRoute(facts, match, where))
}

/** Answers in the turn of the application or, without one, of the sender's address. */
async function inTurn<Answer>(
  facts: RequestFacts,
  app: string | undefined,
  answer: () => Promise<Answer> | Answer,
): Promise<Answer> {
  const { service, request } = facts
  const turn = service.turns.next(app ?? ownerWithoutKey(request, service.options.trustProxy))
  const endTurn = turn instanceof Promise ? await turn : turn
  const startedAt = performance.now()
  facts.endTurn = () => endTurn(performance.now() - startedAt)
  try {
    const answered = await answer()
    facts.endTurn()
    return answered
  } catch (error) {
    // A flood of refused requests counts in full.
    endTurn()
    throw error
  }
}

type Where = Pick<Destination, 'url' | 'basePath'>
type RouteMatch = Match & { kind: 'route' }

function answerOfRoute(facts: RequestFacts, { route, params }: RouteMatch, where: Where): Promise<ApiAnswer> {
  const { service, request, headers } = facts
  facts.operation = route.operation
  return inServerSpan(service.engine.options.tracing, request, route, async (trace) => {
    const refuseInTurn = (error: unknown) => inTurn(facts, undefined, () => Promise.reject(error))
    const ahead = route.readsAhead && !hasLink(request) ? senderAhead(request, service) : undefined
    const sender = route.access === 'key' && !ahead ? senderOf(request, service, { route, params }) : undefined
    const caller = ahead?.caller ?? (await sender?.catch(refuseInTurn))
    const run = async () => {
      const call = new Call(facts, where, { caller, trace, refusal: ahead?.refusal })
      let answer: RouteAnswer
      try {
        if (caller) service.limiter.take(caller.id, route.bucket ?? 'other', headers)
        if (request.isUpgrade && !route.isWebSocket) throw noWebSocket()
        answer = await route.run(call, params)
      } finally {
        // Whatever the route returned or threw: an ended key takes precedence.
        if (ahead) await call.requireAllowed()
      }
      // Other methods need no slot: the outcome of a change is reported in any case.
      return inPieces(answer, service, request.method === 'GET' ? caller?.id : undefined)
    }
    // A signed link waits for its application's turn once the signature has been checked.
    return route.access === 'link' ? run().catch(refuseInTurn) : inTurn(facts, caller?.id, run)
  })
}

/** For routes whose answer is no WebSocket: it may be a stream, which such a connection cannot send. */
function noWebSocket(): Problem {
  return new Problem('BAD_INPUT', 'No WebSocket can be opened here. Send the request without the Upgrade header.')
}

/** Identifies the sender by its key or, on routes open to links, by a link. @throws Problem */
function senderOf(request: ApiRequest, service: Service, { route, params }: Omit<RouteMatch, 'kind'>): Promise<Sender> {
  if (!hasLink(request)) return authenticate(request, service)
  return senderOfLink(request, service, route.isOpenToLinks && params.id)
}

/** @throws Problem for programs; people get a page */
function answerWithoutRoute(facts: RequestFacts, match: Exclude<Match, { kind: 'route' }>, where: Where): ApiAnswer {
  const { request, service } = facts
  const { method, headers } = request
  if (match.kind === 'none') {
    if ((method === 'GET' || method === 'HEAD') && prefersHtml(headers.get('accept')))
      return notFoundPage(new Call(facts, where))
    const { basePath: base, url } = where
    if (!service.options.resumableUploads && url.pathname.startsWith(base + resumablePath))
      throw notFound(
        'This service has no resumable uploads. Send the whole file with PUT to the `uploadUrl` that GET ' +
          `${base}/upload returns.`,
      )
    throw notFound(
      `There is nothing at ${request.address().pathname.slice(0, 200)}. The paths of this service begin with ` +
        `"${base}/", for example ${base}/upload.`,
    )
  }
  const allow = match.allow.join(', ')
  if (method === 'OPTIONS')
    return empty(204, {
      allow,
      ...match.optionsHeaders,
      ...preflightHeaders(request, service.options.cors, match.allow),
    })
  throw new Problem('METHOD_NOT_ALLOWED', `${method} is not allowed here. Use ${allow}.`, { headers: { allow } })
}

/** Returns the error for the client; logs errors that are the service's own fault for the operator. */
function told({ service, request, requestId, operation }: RequestFacts, error: unknown): Problem {
  const problem = toProblem(error)
  const isOurs = problem.code === 'INTERNAL_ERROR' || problem.code === 'STORE_UNAVAILABLE'
  if (isOurs && !request.signal.aborted) {
    service.engine.options.logger.error(
      { requestId, method: request.method, operation, err: problem.cause ?? problem },
      'A request failed inside the service.',
    )
  }
  return problem
}

function incomingId(id: string | null): string | undefined {
  return id !== null && /^[A-Za-z0-9._:-]{1,128}$/.test(id) ? id : undefined
}
