import type { JobRecord } from '../job/job.js'
import { jobAttributes } from '../job/span-attributes.js'
import type { TraceContext } from '../job/trace-context.js'
import { traced, type Tracing } from '../ports/tracing.js'

/** Stores a new job in a span, the parent of its attempts and webhook messages. */
export function inSubmitSpan<Result>(
  tracing: Tracing,
  job: JobRecord,
  parent: TraceContext | undefined,
  store: (job: JobRecord) => Promise<Result>,
): Promise<Result> {
  const attributes = {
    ...jobAttributes(job),
    'messaging.operation.name': 'submit',
    'messaging.operation.type': 'send',
  }
  return traced(tracing, { name: `submit ${job.workflow}`, kind: 'producer', parent, attributes }, (span) =>
    store({ ...job, trace: span.context ?? null }),
  )
}
