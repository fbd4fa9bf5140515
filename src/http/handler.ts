import { randomBytes } from 'node:crypto'
import { StemworkError } from '../core/engine/errors.js'
import { type ApiAnswer, empty } from './routing/answer.js'
import type { ApiRequest } from './routing/api-request.js'
import { authenticate } from './routing/authenticate.js'
import { Call, type Service } from './routing/call.js'
import { corsHeaders, preflightHeaders } from './routing/cors.js'
import { deprecationHeaders } from './routing/deprecation.js'
import { prefersHtml } from './routing/prefers-html.js'
import type { HttpEngine } from './http-engine.js'
import { JobWatch } from './job-watch.js'
import { ListTurns } from './routing/list-turns.js'
import { KnownKeys } from './auth/known-keys.js'
import { Metrics } from './metrics.js'
import { type Handler, mountable } from './mounts/mountable.js'
import { type HandlerOptions, type HandlerSettings, resolveHandlerOptions } from './options.js'
import { Problem, problemAnswer, toProblem } from './routing/problem.js'
import { RateLimiter } from './routing/rate-limit.js'
import { RequestBody } from './routing/request-body.js'
import { RequestIds } from './routing/request-ids.js'
import type { RequestUrl } from './routing/request-url.js'
import { type Match, RouteTable } from './routing/route-table.js'
import { allRoutes } from './routes.js'
import { notFoundPage } from './service/not-found-page.js'
import { WrongKeys } from './routing/wrong-keys.js'
import { requireTus } from './storage/resumable-routes.js'
import { inServerSpan } from './routing/server-span.js'
import { StorageUse } from './routing/storage-use.js'
import { UrlSigner } from './auth/signed-url.js'

/**
 * The whole HTTP interface as one function, for any framework. `stemwork/express`, `stemwork/node` and the others mount
 * it.
 *
 * @example
 * const handler = createHandler(engine, { basePath: '/v1', secrets: [process.env.LINK_SECRET] })
 * const response = await handler(new Request('http://localhost/v1/application', { headers: { authorization: key } }))
 * @throws StemworkError `INVALID_OPTIONS` naming the option and what it expects; `MISSING_DEPENDENCY` for resumable
 * uploads without their package.
 */
export function createHandler(engine: HttpEngine, settings: HandlerSettings = {}): Handler {
  if (typeof (engine as HttpEngine | undefined)?.submit !== 'function' || !engine.options) {
    throw new StemworkError('INVALID_OPTIONS', 'createHandler takes an engine, as createEngine() returns it.')
  }
  const options = resolveHandlerOptions(settings)
  if (options.resumableUploads) requireTus()
  const { logger } = engine.options
  const service: Service = {
    engine,
    options,
    signer: new UrlSigner(options.secrets ?? [randomBytes(32).toString('hex')]),
    watch: new JobWatch(engine, options.limits.waitingRequests),
    keys: new KnownKeys(),
    wrongKeys: new WrongKeys(options.rateLimits.wrongKeys),
    limiter: new RateLimiter(options.rateLimits),
    lists: new ListTurns(),
    storage: new StorageUse(engine, options.limits),
    metrics: options.metrics ? new Metrics(engine) : undefined,
  }
  const table = new RouteTable(allRoutes(options))
  const requestIds = new RequestIds()
  if (options.directStorage && !(engine.blobs.signPut && engine.blobs.signGet)) {
    throw new StemworkError(
      'INVALID_OPTIONS',
      'directStorage needs a blob store that can sign links, such as S3. Leave it off with this one.',
    )
  }
  if (options.publicUrl && !options.publicUrl.startsWith('https://')) {
    logger.warn(
      { publicUrl: options.publicUrl },
      'publicUrl is not https. Existing clients download only results whose link begins with https://.',
    )
  }

  let isMisplacedTold = false
  return mountable(async (request, { mountPath = '', bodyRead = false, parsedBody }) => {
    const startedAt = performance.now()
    const requestId = incomingId(request.headers.get('x-request-id')) ?? requestIds.next()
    const headers: Record<string, string> = { 'x-request-id': requestId }
    const body = new RequestBody(request, { bodyRead, parsedBody }, options.limits)
    let operation = 'none'
    let answer: ApiAnswer
    try {
      if (options.cors) Object.assign(headers, corsHeaders(request, options.cors))
      const { url, match, basePath, deprecated } = locate(request, mountPath)
      if (deprecated) Object.assign(headers, deprecationHeaders(deprecated))
      const facts = { service, request, requestId, body, headers, url, basePath, trace: undefined }
      if (match.kind === 'route') {
        const { route, params } = match
        operation = route.operation
        answer = await inServerSpan(engine.options.tracing, request, route, async (trace) => {
          const caller = route.access === 'key' ? await authenticate(request, service) : undefined
          if (caller) service.limiter.take(caller.id, route.bucket ?? 'other', headers)
          return await route.run(new Call({ ...facts, trace }, caller), params)
        })
        if (request.method === 'HEAD') answer.body = null
      } else {
        if (match.kind === 'none') tellMisplaced(url.pathname, basePath)
        const isRead = request.method === 'GET' || request.method === 'HEAD'
        const wantsPage = match.kind === 'none' && isRead && prefersHtml(request.headers.get('accept'))
        answer = wantsPage ? notFoundPage(new Call(facts, undefined)) : withoutRoute(request, match, basePath)
        if (request.method === 'HEAD') answer.body = null
      }
    } catch (error) {
      const problem = toProblem(error)
      const isOurs = problem.code === 'INTERNAL_ERROR' || problem.code === 'STORE_UNAVAILABLE'
      if (isOurs && !request.signal.aborted) {
        logger.error(
          { requestId, method: request.method, err: problem.cause ?? problem },
          'A request failed inside the service.',
        )
      }
      answer = problemAnswer(problem, { accept: request.headers.get('accept'), requestId })
    }
    if (body.mayHaveRest && !(await body.settle())) headers.connection = 'close'
    if (answer.headers.link && headers.link) headers.link = `${answer.headers.link}, ${headers.link}`
    Object.assign(answer.headers, headers)
    const tookMs = performance.now() - startedAt
    service.metrics?.observe(operation, answer.status, tookMs / 1000)
    logger.debug({ requestId, operation, status: answer.status, tookMs }, 'Request answered.')
    return answer
  })

  function locate(request: ApiRequest, mountPath: string): Place {
    const url = readAddress(request)
    for (const base of options.basePath) {
      const basePath = mountPath + base
      if (!isBelow(url.pathname, basePath)) continue
      const match = table.match(request.method, url.pathname, basePath.length)
      return { url, match, basePath, deprecated: options.deprecated[base] }
    }
    const match: Match = isBelow(url.pathname, mountPath)
      ? table.match(request.method, url.pathname, mountPath.length)
      : { kind: 'none' }
    const answersHere = match.kind === 'route' && match.route.atRoot
    return {
      url,
      match: answersHere ? match : { kind: 'none' },
      basePath: mountPath + options.basePath[0],
      deprecated: undefined,
    }
  }

  /** Warns the host, once, of a request for one of our routes under another path: the mount path is probably wrong. */
  function tellMisplaced(path: string, basePath: string): void {
    if (isMisplacedTold || !table.hasRouteAtEndOf(path)) return
    isMisplacedTold = true
    logger.warn(
      { path, expected: `${basePath}/...` },
      "A request for a route of this service used another path. Its paths begin with the mount's path, which " +
        'Express and Fastify ' +
        'know and the other mounts take as `path`, and then with `basePath` of createHandler: give each part once.',
    )
  }

  function withoutRoute(request: ApiRequest, match: Exclude<Match, { kind: 'route' }>, basePath: string): ApiAnswer {
    if (match.kind === 'none')
      throw new Problem(
        'NOT_FOUND',
        `There is nothing at this path. The paths of this service begin with "${basePath}/", for example ` +
          `${basePath}/upload.`,
      )
    const allow = match.allow.join(', ')
    if (request.method === 'OPTIONS')
      return empty(204, { allow, ...preflightHeaders(request, options.cors, match.allow) })
    throw new Problem('METHOD_NOT_ALLOWED', `${request.method} is not allowed here. Use ${allow}.`, {
      headers: { allow },
    })
  }
}

/** Where a request goes. */
interface Place {
  url: RequestUrl
  match: Match
  /** Path in front of the routes, mount path included. */
  basePath: string
  /** Present for a deprecated base path. */
  deprecated: HandlerOptions['deprecated'][string] | undefined
}

function readAddress(request: ApiRequest): RequestUrl {
  try {
    return request.address()
  } catch (cause) {
    throw new Problem('BAD_INPUT', 'The address of the request is not valid; check the Host header.', { cause })
  }
}

function isBelow(path: string, base: string): boolean {
  return path.startsWith(base) && (path.length === base.length || path[base.length] === '/')
}

function incomingId(id: string | null): string | undefined {
  return id !== null && /^[A-Za-z0-9._:-]{1,128}$/.test(id) ? id : undefined
}
