import { errorLine } from '../job/error-text.js'
import type { Delivery } from '../job/job.js'
import { type TraceContext, traceHeaders } from '../job/trace-context.js'
import type { Application } from '../ports/application-store.js'
import { type SpanOrder, traced } from '../ports/tracing.js'
import { webhookHeaders } from './signature.js'
import { signingSecrets } from './signing-secrets.js'
import type { SharedParts } from '../engine-parts.js'

export type PostPorts = Pick<SharedParts, 'clock' | 'options' | 'logger'>

/** A webhook message, and the job or batch that it reports. */
export interface Message {
  app: string
  delivery: Delivery
  data: object
  /** The application whose secrets sign the message. */
  application: Application | undefined
  /** The job or batch, for the log. */
  about: { jobId: string } | { batch: string }
  /** The trace of the job or batch, which the span continues. */
  trace?: TraceContext | null
}

/**
 * Makes one attempt to send a message, signed with the secrets of its application, in a span.
 *
 * @returns the receiver's status; null when it could not be reached
 */
export async function postMessage(message: Message, ports: PostPorts, signal: AbortSignal): Promise<number | null> {
  const { delivery, about, trace } = message
  const { hostname, port } = new URL(delivery.url)
  const order: SpanOrder = {
    name: 'POST webhook',
    kind: 'client',
    parent: trace,
    attributes: {
      'http.request.method': 'POST',
      'server.address': hostname,
      'server.port': Number(port) || 443,
      'http.request.resend_count': delivery.attempts,
      'messaging.message.id': delivery.id,
      'stemwork.event': delivery.event,
      ...('jobId' in about ? { 'stemwork.job.id': about.jobId } : {}),
    },
  }
  return await traced(ports.options.tracing, order, async (span) => {
    const status = await post(message, ports, signal, span.context)
    if (status !== null) span.set({ 'http.response.status_code': status })
    if (status === null || status >= 400)
      span.end(new Error(`The receiver ${status === null ? 'could not be reached' : `answered ${status}`}.`))
    return status
  })
}

async function post(
  { app, delivery, data, about, application }: Message,
  { clock, options, logger }: PostPorts,
  signal: AbortSignal,
  trace: TraceContext | undefined,
): Promise<number | null> {
  const payload = JSON.stringify({
    type: delivery.event,
    timestamp: new Date(delivery.occurredAt).toISOString(),
    data,
  })
  try {
    // Loaded at the start of the engine: programs that only submit jobs need none of it.
    const { guardedFetch } = await import('../fetch/guarded-fetch.js')
    const now = await clock.time()
    const secrets = signingSecrets(app, application, options.webhooks.secret, now)
    if (secrets.length === 0) {
      const problem = 'A webhook message cannot be signed: its application no longer has a webhook secret. Set one.'
      logger.warn({ ...about, deliveryId: delivery.id, app }, problem)
      return null
    }
    const response = await guardedFetch(delivery.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...traceHeaders(trace),
        ...webhookHeaders(secrets, { id: delivery.id, sentAt: now, payload }),
      },
      body: Buffer.from(payload),
      signal: AbortSignal.any([AbortSignal.timeout(options.webhooks.timeoutMs), signal]),
      // Only the status matters.
      maxBytes: Infinity,
      policy: options.fetch,
      maxRedirects: 0,
    })
    response.cancel()
    return response.status
  } catch (error) {
    const receiver = new URL(delivery.url).origin
    if (!signal.aborted)
      logger.warn(
        // What the fetch says to clients hides its cause, which the operator needs.
        { ...about, deliveryId: delivery.id, receiver, cause: errorLine((error as Error).cause ?? error) },
        'A webhook receiver could not be reached. Check its address and that it is running.',
      )
    return null
  }
}

/** The outcome of an attempt. @param isLast whether no attempt follows */
export function outcomeOf(status: number | null, isLast: boolean): Delivery['outcome'] {
  if (status !== null && status >= 200 && status < 300) return 'delivered'
  if (status === 410) return 'gone'
  return isLast ? 'given_up' : 'pending'
}

/** Adds up to 20 % to a delay, so that messages that failed together are not retried together. */
export function jittered(delayMs: number): number {
  return Math.round(delayMs * (1 + Math.random() * 0.2))
}
