import { z } from 'zod'

/**
 * Version 00 of https://www.w3.org/TR/trace-context/ and later ones, which begin the same way. All-zero IDs mean none.
 */
const traceparentPattern =
  /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[\x21-\x7e]{1,200})?$/
/** The minimum length that a tracing vendor must pass on. */
const maxTracestateLength = 512

/**
 * A position in a trace, as W3C Trace Context writes it: it is stored with a job, sent to its processes and to its
 * webhook's receiver.
 */
export const traceContextSchema = z.object({
  traceparent: z.string().regex(traceparentPattern),
  tracestate: z.string().max(maxTracestateLength).optional(),
})
export type TraceContext = z.infer<typeof traceContextSchema>

/** The context that a request carries; `undefined` without a valid one. */
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
