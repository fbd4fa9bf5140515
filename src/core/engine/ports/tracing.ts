import type { TraceContext } from '../job/trace-context.js'

export type SpanAttributes = Record<string, string | number | boolean>

/** A piece of work that is about to begin. */
export interface SpanOrder {
  name: string
  /** As OpenTelemetry has them: `producer` submits a job, `consumer` makes an attempt, `client` calls a webhook. */
  kind: 'internal' | 'server' | 'client' | 'producer' | 'consumer'
  /** Where it belongs: null begins a trace. Default: the span in whose `within` it begins, if there is one. */
  parent?: TraceContext | null
  /** Named by OpenTelemetry's semantic conventions where these have a name, else `stemwork.`. */
  attributes?: SpanAttributes
}

/** Work under way. */
export interface Span {
  /** For those who go on with the trace elsewhere. */
  readonly context: TraceContext | undefined
  set(attributes: SpanAttributes): void
  /** Does the work with this span as the one that others belong to. Returns or throws what the work does. */
  within<Result>(work: () => Result): Result
  /** Ends it once; further calls do nothing. @param error why the work failed */
  end(error?: unknown): void
}

/** Records what the engine does as spans. Its methods are cheap and never throw. */
export interface Tracing {
  begin(order: SpanOrder): Span
}

/** Records nothing and passes the context on that it is given, so that a trace goes on behind a service that takes no part in it. */
export const noTracing: Tracing = {
  begin: ({ parent }) => ({
    context: parent ?? undefined,
    set() {},
    within: (work) => work(),
    end() {},
  }),
}

export function isTracing(value: unknown): value is Tracing {
  return typeof value === 'object' && value !== null && typeof (value as Tracing).begin === 'function'
}

/** Does the work in a span, which ends with it; an error that is thrown is the span's. */
export async function traced<Result>(
  tracing: Tracing,
  order: SpanOrder,
  work: (span: Span) => Promise<Result>,
): Promise<Result> {
  const span = tracing.begin(order)
  try {
    const result = await span.within(() => work(span))
    span.end()
    return result
  } catch (error) {
    span.end(error)
    throw error
  }
}
