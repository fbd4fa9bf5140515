import { setTimeout as delay } from 'node:timers/promises'
import type { HttpEngine } from './http-engine.js'
import { counter, histogram, labelText, metricLines } from './prometheus.js'
import type { JobRecord } from '../core/engine/job/job.js'
import type { PoolStatus } from '../core/engine/engine.js'

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
        ...(await workflowLines()),
      ]
      return `${lines.join('\n')}\n`
    },
  }
}

/** How long a scrape waits for the job store, in addition to the time of its health check. */
const poolsMs = 2_000
/** Upper bounds of the buckets of waits and runs, in seconds. */
const bounds = [1, 5, 15, 60, 300, 900, 3600]

/** Gauges of each pool: the end of the name, its meaning, and the value, or null for none. */
const poolGauges: readonly (readonly [string, string, (pool: PoolStatus) => number | null])[] = [
  ['queued', 'Jobs that are due and waiting, in the whole store.', ({ queued }) => queued],
  ['oldest_wait_seconds', 'How long the first of them has been due.', ({ oldestMs }) => oldestMs / 1000],
  ['running', 'Jobs that run, on all workers.', ({ running }) => running],
  ['workers', 'Active workers that accept such jobs.', ({ workers }) => workers],
  ['slots', 'Number of jobs that these workers run at a time.', ({ slots }) => slots],
  [
    'backlog_seconds',
    'Waiting work in seconds of one slot, based on the mean of recent jobs; absent until a job has ended.',
    ({ backlogSeconds }) => backlogSeconds,
  ],
]

/**
 * Durations and outcomes of this process's jobs by workflow, and the pools of the whole store, for Prometheus.
 *
 * @returns a function that reads the lines
 */
function workflowMetrics(engine: Pick<HttpEngine, 'pools' | 'on'>): () => Promise<string[]> {
  const attempts = counter('stemwork_workflow_attempts_total', 'Attempts that this process began.')
  const failures = counter('stemwork_workflow_failures_total', 'Jobs that ended FAILED in this process.')
  const waits = histogram(
    'stemwork_workflow_wait_seconds',
    'Time from when a job was due to its first attempt here.',
    bounds,
  )
  const runs = histogram(
    'stemwork_workflow_run_seconds',
    'Time from the first attempt of a job to its end here.',
    bounds,
  )
  const observeRun = ({ workflow, status, startedAt, completedAt }: JobRecord) => {
    if (startedAt !== null && completedAt !== null)
      runs.observe({ workflow, status }, secondsBetween(startedAt, completedAt))
  }
  engine.on('job.started', ({ job: { workflow, startedAt, attempts: attempt, token, createdAt, notBefore } }) => {
    attempts.add({ workflow })
    // Later attempts waited for other reasons.
    if (attempt === 1 && token === 1 && startedAt !== null)
      waits.observe({ workflow }, secondsBetween(Math.max(createdAt, notBefore), startedAt))
  })
  engine.on('job.succeeded', ({ job }) => observeRun(job))
  engine.on('job.failed', ({ job }) => {
    observeRun(job)
    // The status codes of a client's server must not create a series each.
    const reason = (job.error?.reason ?? '').replace(/^(download_http_.).+$/, '$1xx')
    failures.add({ workflow: job.workflow, code: job.error?.code ?? '', reason })
  })
  return async () => {
    // `stemwork_up` reports a store that does not answer; the counters of this process do not depend on it.
    const pools = await Promise.race([engine.pools(), delay(poolsMs, [], { ref: false })]).catch(() => [])
    const gauges = poolGauges.flatMap(([name, help, valueOf]) => {
      const samples = pools.flatMap((pool): [string, number][] => {
        const value = valueOf(pool)
        return value === null ? [] : [[labelText({ workflow: pool.workflow, pool: pool.needs.join(' ') }), value]]
      })
      return metricLines('gauge', `stemwork_pool_${name}`, help, samples)
    })
    return [...gauges, ...[attempts, failures, waits, runs].flatMap((one) => one.lines())]
  }
}

/** From times in milliseconds. Not negative, though the clocks of two machines may differ. */
function secondsBetween(from: number, to: number): number {
  return Math.max(0, to - from) / 1000
}
