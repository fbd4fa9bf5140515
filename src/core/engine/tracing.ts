import { tracingChannel, type TracingChannel } from 'node:diagnostics_channel'

/**
 * Spans for whoever listens: `tracing:stemwork.job` around a whole attempt, and `stemwork.fetch`, `stemwork.run` and
 * `stemwork.publish` inside it, in the form of `node:diagnostics_channel`'s tracing channels (`start`, `end`, `asyncStart`,
 * `asyncEnd`, `error`). Without a subscriber they cost a property read.
 */
export type SpanName = 'stemwork.job' | 'stemwork.fetch' | 'stemwork.run' | 'stemwork.publish'

/** What a span's messages carry; `error` and `result` are added by Node. */
export interface SpanContext {
  jobId: string
  app: string
  workflow: string
  /** 1 for the first attempt. */
  attempt: number
}

const channels = new Map<SpanName, TracingChannel<string, SpanContext>>()

export function traced<Result>(name: SpanName, context: SpanContext, work: () => Promise<Result>): Promise<Result> {
  let channel = channels.get(name)
  if (!channel) channels.set(name, (channel = tracingChannel<string, SpanContext>(name)))
  // Node 20 has no `hasSubscribers` on a tracing channel; the start of a span is what every tracer listens to.
  if (!channel.start.hasSubscribers && !channel.asyncEnd.hasSubscribers) return work()
  return channel.tracePromise<Result>(work, { ...context })
}
