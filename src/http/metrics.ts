import type { HttpEngine } from './http-engine.js'
import { counter, histogram, metricLines } from './prometheus.js'
import { WorkflowMetrics } from './workflow-metrics.js'

const jobEvents = [
  'job.created',
  'job.started',
  'job.requeued',
  'job.preempted',
  'job.succeeded',
  'job.failed',
  'job.deleted',
] as const

/** Counts requests and jobs of this process, for Prometheus. */
export class Metrics {
  readonly #engine: Pick<HttpEngine, 'health'>
  readonly #workflows: WorkflowMetrics
  readonly #jobs = counter('stemwork_job_events_total', 'Job events of this process.')
  readonly #requests = counter('stemwork_http_requests_total', 'Requests answered.')
  readonly #times = histogram(
    'stemwork_http_request_seconds',
    'Time to the start of the response.',
    [0.005, 0.025, 0.1, 0.5, 2.5, 10, 60],
  )

  constructor(engine: Pick<HttpEngine, 'health' | 'pools' | 'on'>) {
    this.#engine = engine
    this.#workflows = new WorkflowMetrics(engine)
    for (const event of jobEvents) {
      this.#jobs.add({ event }, 0)
      engine.on(event, () => this.#jobs.add({ event }))
    }
  }

  /** @param operation name of the route; with paths, each job would be its own time series. */
  observe(operation: string, status: number, seconds: number): void {
    this.#requests.add({ operation, status: String(status) })
    this.#times.observe({ operation }, seconds)
  }

  async text(): Promise<string> {
    const { ok, running, queued, runner } = await this.#engine.health()
    const gauge = (name: string, help: string, value: number) => metricLines('gauge', name, help, [['', value]])
    const lines = [
      ...gauge('stemwork_up', 'Whether the service is ready.', ok ? 1 : 0),
      ...gauge('stemwork_jobs_running', 'Jobs that run in this process.', running),
      ...gauge('stemwork_jobs_queued', 'Waiting jobs in the whole store.', queued),
      ...gauge('stemwork_runner_slots', 'Jobs that can run at a time.', runner.slots),
      ...metricLines('counter', 'stemwork_runner_restarts_total', 'Processes that were lost and replaced.', [
        ['', runner.restarts],
      ]),
      ...this.#jobs.lines(),
      ...this.#requests.lines(),
      ...this.#times.lines(),
      // `stemwork_up` reports an unavailable store.
      ...(await this.#workflows.lines().catch(() => [])),
    ]
    return `${lines.join('\n')}\n`
  }
}
