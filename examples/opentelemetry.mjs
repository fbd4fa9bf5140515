// Spans of jobs for OpenTelemetry, from the library's diagnostics channels. `tracer` is what `trace.getTracer('stemwork')` of
// @opentelemetry/api returns; the library itself does not depend on it.
import { tracingChannel } from 'node:diagnostics_channel'

export function traceJobs(tracer) {
  for (const name of ['stemwork.job', 'stemwork.fetch', 'stemwork.run', 'stemwork.publish']) {
    const spans = new WeakMap()
    tracingChannel(name).subscribe({
      start(message) {
        const { jobId, app, workflow, attempt } = message
        spans.set(
          message,
          tracer.startSpan(name, {
            attributes: { 'job.id': jobId, 'job.app': app, 'job.workflow': workflow, 'job.attempt': attempt },
          }),
        )
      },
      error(message) {
        spans.get(message)?.recordException(message.error)
      },
      asyncEnd(message) {
        spans.get(message)?.end()
      },
    })
  }
}
