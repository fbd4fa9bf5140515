import type { JobRecord } from '../job/job.js'
import type { TraceContext } from '../job/trace-context.js'
import { traced, type Tracing } from '../ports/tracing.js'

/** Stores the jobs of one request in one span, the parent of their attempts and of the batch's webhook messages. */
export function inBatchSpan<Result>(
  tracing: Tracing,
  { app, name, jobs }: { app: string; name: string; jobs: readonly JobRecord[] },
  parent: TraceContext | undefined,
  store: (jobs: JobRecord[], trace: TraceContext | null) => Promise<Result>,
): Promise<Result> {
  const attributes = {
    'messaging.system': 'stemwork',
    'messaging.operation.name': 'submit',
    'messaging.operation.type': 'send',
    'messaging.batch.message_count': jobs.length,
    'stemwork.app': app,
    'stemwork.batch': name,
  }
  return traced(tracing, { name: 'submit batch', kind: 'producer', parent, attributes }, (span) => {
    const trace = span.context ?? null
    return store(
      jobs.map((job) => ({ ...job, trace })),
      trace,
    )
  })
}
