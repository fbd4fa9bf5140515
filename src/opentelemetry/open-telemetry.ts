import {
  type Context,
  context,
  createTraceState,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span as OtelSpan,
  SpanKind,
  SpanStatusCode,
  trace,
  type TracerProvider,
} from '@opentelemetry/api'
import type { TraceContext } from '../core/engine/job/trace-context.js'
import type { Span, SpanOrder, Tracing } from '../core/engine/ports/tracing.js'

export interface OpenTelemetryOptions {
  /** Default: the provider that the process registers, at whatever time. */
  tracerProvider?: TracerProvider
}

const kinds: Record<SpanOrder['kind'], SpanKind> = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
}

/**
 * Records what an engine does as spans of OpenTelemetry. It starts and registers nothing: the SDK that the process has
 * set up decides which spans are kept and where they go, and without one nothing is recorded.
 *
 * @example
 * import { openTelemetry } from 'stemwork/opentelemetry'
 * const engine = createEngine({ tracing: openTelemetry() })
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): Tracing {
  return {
    begin({ name, kind, parent, startedAt, attributes }) {
      const active = context.active()
      const requestSpan = kind === 'server' ? trace.getSpan(active) : undefined
      // An instrumentation of the host's server has begun the span of this request.
      if (requestSpan) return spanOf(requestSpan, active, false)
      const above = parent === undefined ? active : parent === null ? ROOT_CONTEXT : remoteContext(parent)
      const tracer = (options.tracerProvider ?? trace.getTracerProvider()).getTracer('stemwork')
      const span = tracer.startSpan(name, { kind: kinds[kind], startTime: startedAt, attributes }, above)
      return spanOf(span, trace.setSpan(above, span), true)
    },
  }
}

function spanOf(span: OtelSpan, own: Context, isOurs: boolean): Span {
  let hasEnded = false
  return {
    context: traceContext(span),
    set: (attributes) => void span.setAttributes(attributes),
    within: (work) => context.with(own, work),
    end(error) {
      if (hasEnded || !isOurs) return
      hasEnded = true
      if (error !== undefined) fail(span, error)
      span.end()
    },
  }
}

function fail(span: OtelSpan, error: unknown): void {
  try {
    const exception = error instanceof Error ? error : new Error(String(error))
    const { code } = exception as Error & { code?: unknown }
    span.setAttribute('error.type', typeof code === 'string' ? code : exception.name)
    span.recordException(exception)
    span.setStatus({ code: SpanStatusCode.ERROR, message: exception.message })
  } catch {
    // The error has no text, or a getter that throws.
    span.setStatus({ code: SpanStatusCode.ERROR, message: 'an error was thrown that cannot be read' })
  }
}

/** In the format of https://www.w3.org/TR/trace-context/, whatever the propagator: jobs may continue elsewhere. */
function traceContext(span: OtelSpan): TraceContext | undefined {
  const found = span.spanContext()
  if (!isSpanContextValid(found)) return undefined
  const flags = (found.traceFlags & 0xff).toString(16).padStart(2, '0')
  const traceparent = `00-${found.traceId}-${found.spanId}-${flags}`
  const tracestate = found.traceState?.serialize()
  return tracestate ? { traceparent, tracestate } : { traceparent }
}

function remoteContext({ traceparent, tracestate }: TraceContext): Context {
  const [, traceId = '', spanId = '', flags = '00'] = traceparent.split('-')
  const traceState = tracestate === undefined ? undefined : createTraceState(tracestate)
  const remote = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true, traceState }
  return trace.setSpanContext(ROOT_CONTEXT, remote)
}
