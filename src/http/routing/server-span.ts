import { type TraceContext, traceContextOf } from '../../core/engine/job/trace-context.js'
import { noTracing, type Tracing } from '../../core/engine/ports/tracing.js'
import type { ApiAnswer } from './answer.js'
import type { ApiRequest } from './api-request.js'
import { toProblem } from './problem.js'
import type { Route } from './route.js'

/**
 * Answers a request in its own span, a child of the one in its `traceparent`; health checks, which are frequent, get
 * none.
 */
export function inServerSpan(tracing: Tracing, request: ApiRequest, route: Route, work: Work): Promise<ApiAnswer> {
  const parent = traceContextOf(request.headers)
  return route.atRoot || tracing === noTracing ? work(parent) : inSpan(tracing, request, { route, parent, work })
}

type Work = (trace: TraceContext | undefined) => Promise<ApiAnswer>

async function inSpan(
  tracing: Tracing,
  request: ApiRequest,
  { route, parent, work }: { route: Route; parent: TraceContext | undefined; work: Work },
): Promise<ApiAnswer> {
  const attributes = { 'http.request.method': request.method, 'http.route': route.path }
  const order = { name: `${request.method} ${route.path}`, kind: 'server', parent, attributes } as const
  const span = tracing.begin(order)
  const ended = (status: number, error?: unknown) => {
    span.set({ 'http.response.status_code': status })
    // A client's error is not an error of this span.
    span.end(status >= 500 ? error : undefined)
  }
  try {
    const answer = await span.within(() => work(span.context))
    ended(answer.status)
    return answer
  } catch (error) {
    ended(toProblem(error).status, error)
    throw error
  }
}
