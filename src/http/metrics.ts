import type { HttpEngine } from './http-engine.js'
import { WorkflowMetrics } from './workflow-metrics.js'

const jobEvents = ['job.created', 'job.started', 'job.requeued', 'job.succeeded', 'job.failed', 'job.deleted'] as const

/** Upper bounds in seconds. */
const buckets = [0.005, 0.025, 0.1, 0.5, 2.5, 10, 60]

interface Timing {
  counts: number[]
  sum: number
  count: number
}

/** Counts requests and jobs of this process, for Prometheus. */
export class Metrics {
  readonly #engine: Pick<HttpEngine, 'health'>
  readonly #workflows: WorkflowMetrics
  readonly #requests = new Map<string, number>()
  readonly #timings = new Map<string, Timing>()
  readonly #jobs = new Map<string, number>()

  constructor(engine: Pick<HttpEngine, 'health' | 'pools' | 'on'>) {
    this.#engine = engine
    this.#workflows = new WorkflowMetrics(engine)
    for (const event of jobEvents) {
      this.#jobs.set(event, 0)
      engine.on(event, () => increment(this.#jobs, event))
    }
  }

  /** @param operation name of the route; with paths, each job would be its own time series. */
  observe(operation: string, status: number, seconds: number): void {
    increment(this.#requests, `operation="${operation}",status="${status}"`)
    const timing = this.#timings.get(operation) ?? { counts: buckets.map(() => 0), sum: 0, count: 0 }
    this.#timings.set(operation, timing)
    timing.sum += seconds
    timing.count++
    buckets.forEach((bound, index) => {
      if (seconds <= bound) timing.counts[index] = (timing.counts[index] ?? 0) + 1
    })
  }

  /** https://prometheus.io/docs/instrumenting/exposition_formats/ */
  async text(): Promise<string> {
    const { ok, running, queued, runner } = await this.#engine.health()
    const lines = [
      ...family('stemwork_up', 'gauge', 'Whether the service is ready.', [['', ok ? 1 : 0]]),
      ...family('stemwork_jobs_running', 'gauge', 'Jobs that run in this process.', [['', running]]),
      ...family('stemwork_jobs_queued', 'gauge', 'Waiting jobs in the whole store.', [['', queued]]),
      ...family('stemwork_runner_slots', 'gauge', 'Jobs that can run at a time.', [['', runner.slots]]),
      ...family('stemwork_runner_restarts_total', 'counter', 'Processes that were lost and replaced.', [
        ['', runner.restarts],
      ]),
      ...family(
        'stemwork_job_events_total',
        'counter',
        'Job events of this process.',
        [...this.#jobs].map(([event, count]) => [`event="${event}"`, count]),
      ),
      ...family('stemwork_http_requests_total', 'counter', 'Requests answered.', [...this.#requests]),
      '# HELP stemwork_http_request_seconds Time to the start of the response.',
      '# TYPE stemwork_http_request_seconds histogram',
    ]
    for (const [operation, { counts, sum, count }] of this.#timings) {
      buckets.forEach((bound, index) =>
        lines.push(`stemwork_http_request_seconds_bucket{operation="${operation}",le="${bound}"} ${counts[index]}`),
      )
      lines.push(
        `stemwork_http_request_seconds_bucket{operation="${operation}",le="+Inf"} ${count}`,
        `stemwork_http_request_seconds_sum{operation="${operation}"} ${sum}`,
        `stemwork_http_request_seconds_count{operation="${operation}"} ${count}`,
      )
    }
    // `stemwork_up` reports an unavailable store.
    lines.push(...(await this.#workflows.lines().catch(() => [])))
    return `${lines.join('\n')}\n`
  }
}

function family(name: string, type: string, help: string, samples: [labels: string, value: number][]): string[] {
  return [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} ${type}`,
    ...samples.map(([labels, value]) => `${name}${labels && `{${labels}}`} ${value}`),
  ]
}

function increment(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}
