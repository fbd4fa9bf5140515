import { z } from 'zod'

/**
 * Version 00 of https://www.w3.org/TR/trace-context/ and later versions, which begin alike. All-zero ids are invalid.
 */
const traceparentPattern =
  /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[\x21-\x7e]{1,200})?$/
/** The minimum length that a tracing vendor must pass on. */
const maxTracestateLength = 512

/**
 * A position in a trace, in the form of W3C Trace Context. It is stored with a job and sent to the job's processes and
 * webhook receiver.
 */
export const traceContextSchema = z.object({
  traceparent: z.string().regex(traceparentPattern),
  tracestate: z.string().max(maxTracestateLength).optional(),
})
export type TraceContext = z.infer<typeof traceContextSchema>

/** Reads the trace context of a request; `undefined` if it has no valid one. */
export function traceContextOf(headers: { get(name: string): string | null }): TraceContext | undefined {
  const traceparent = headers.get('traceparent')?.trim()
  if (traceparent === undefined || !traceparentPattern.test(traceparent)) return undefined
  const tracestate = headers.get('tracestate')?.trim()
  const isKept = tracestate !== undefined && /^[\x20-\x7e]+$/.test(tracestate)
  return isKept && tracestate.length <= maxTracestateLength ? { traceparent, tracestate } : { traceparent }
}

export function traceHeaders(context: TraceContext | null | undefined): Record<string, string> {
  if (!context) return {}
  const { traceparent, tracestate } = context
  return tracestate === undefined ? { traceparent } : { traceparent, tracestate }
}
