import type { HttpEngine } from './http-engine.js'
import { counter, histogram, metricLines } from './prometheus.js'
import { workflowMetrics } from './workflow-metrics.js'

const jobEvents = [
  'job.created',
  'job.started',
  'job.requeued',
  'job.preempted',
  'job.succeeded',
  'job.failed',
  'job.deleted',
] as const

export type Metrics = ReturnType<typeof createMetrics>

/** Counts requests and jobs of this process, for Prometheus. */
export function createMetrics(engine: Pick<HttpEngine, 'health' | 'pools' | 'on'>) {
  const workflowLines = workflowMetrics(engine)
  const jobs = counter('stemwork_job_events_total', 'Job events of this process.')
  const requests = counter('stemwork_http_requests_total', 'Requests answered.')
  const times = histogram(
    'stemwork_http_request_seconds',
    'Time to the start of the response.',
    [0.005, 0.025, 0.1, 0.5, 2.5, 10, 60],
  )
  for (const event of jobEvents) {
    jobs.add({ event }, 0)
    engine.on(event, () => jobs.add({ event }))
  }
  return {
    /** @param operation name of the route; with paths, each job would be its own time series. */
    observe(operation: string, status: number, seconds: number): void {
      requests.add({ operation, status: String(status) })
      times.observe({ operation }, seconds)
    },
    async text(): Promise<string> {
      const { ok, running, queued, runner } = await engine.health()
      const gauge = (name: string, help: string, value: number) => metricLines('gauge', name, help, [['', value]])
      const lines = [
        ...gauge('stemwork_up', 'Whether the service is ready.', ok ? 1 : 0),
        ...gauge('stemwork_jobs_running', 'Jobs that run in this process.', running),
        ...gauge('stemwork_jobs_queued', 'Waiting jobs in the whole store.', queued),
        ...gauge('stemwork_runner_slots', 'Jobs that can run at a time.', runner.slots),
        ...metricLines('counter', 'stemwork_runner_restarts_total', 'Processes that were lost and replaced.', [
          ['', runner.restarts],
        ]),
        ...[jobs, requests, times].flatMap((one) => one.lines()),
        // `stemwork_up` reports an unavailable store.
        ...(await workflowLines().catch(() => [])),
      ]
      return `${lines.join('\n')}\n`
    },
  }
}
