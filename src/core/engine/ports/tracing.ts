import { readableError } from '../job/error-text.js'
import { type TraceContext, traceContextSchema } from '../job/trace-context.js'
import type { Logger } from './logger.js'

export type SpanAttributes = Record<string, string | number | boolean>

/** Work that is about to start. */
export interface SpanOrder {
  name: string
  /** Span kind of OpenTelemetry: `producer` submits a job, `consumer` makes an attempt, `client` calls a webhook. */
  kind: 'internal' | 'server' | 'client' | 'producer' | 'consumer'
  /** The parent: null starts a new trace. Default: the span whose `within` is active, if any. */
  parent?: TraceContext | null
  /** Start of the work, in epoch milliseconds. Default: now. */
  startedAt?: number
  /** Named by OpenTelemetry's semantic conventions, or else with the prefix `stemwork.`. */
  attributes?: SpanAttributes
}

/** Work in progress. */
export interface Span {
  /** Context with which to continue the trace elsewhere. */
  readonly context: TraceContext | undefined
  set(attributes: SpanAttributes): void
  /** Does the work with this span as the parent of others. Returns the work's result or throws its error. */
  within<Result>(work: () => Result): Result
  /** Ends the span; further calls do nothing. @param error why the work failed */
  end(error?: unknown): void
}

/** Records the engine's work as spans. Its methods are cheap and never throw. */
export interface Tracing {
  begin(order: SpanOrder): Span
}

/** Records no spans but passes on the given context, so that a trace continues through a service without tracing. */
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

/**
 * Wraps tracing so that it never throws, and does the work of a span exactly once. Otherwise, a claimed job whose span
 * fails would not run, but stay claimed.
 */
export function steadyTracing(tracing: Tracing, logger: Logger): Tracing {
  let hasFailed = false
  const attempted = <Result>(work: () => Result): Result | undefined => {
    try {
      return work()
    } catch (error) {
      // Logged only once, because each span may fail.
      if (!hasFailed)
        logger.error({ err: readableError(error) }, 'Tracing failed, and spans are lost; jobs are not affected.')
      hasFailed = true
      return undefined
    }
  }
  return {
    begin(order) {
      const span = attempted(() => tracing.begin(order))
      const read = () => traceContextSchema.optional().parse(span?.context)
      return {
        context: span ? attempted(read) : (order.parent ?? undefined),
        set: (attributes) => attempted(() => span?.set(attributes)),
        within: <Result>(work: () => Result) => {
          const once = doneOnce(work)
          attempted(() => span?.within(() => once().result))
          const done = once()
          if (done.error) throw done.error.thrown
          return done.result
        },
        end: (error) => attempted(() => span?.end(error)),
      }
    },
  }
}

type Outcome<Result> = { result: Result; error?: undefined } | { result?: undefined; error: { thrown: unknown } }

function doneOnce<Result>(work: () => Result): () => Outcome<Result> {
  let outcome: Outcome<Result> | undefined
  return () => {
    try {
      return (outcome ??= { result: work() })
    } catch (thrown) {
      return (outcome = { error: { thrown } })
    }
  }
}

/** Does the work in a span, which ends with the work and records its error. */
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
