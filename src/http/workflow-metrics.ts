import type { JobRecord } from '../core/engine/job/job.js'
import type { PoolStatus } from '../core/engine/engine.js'
import type { HttpEngine } from './http-engine.js'

/** Upper bounds in seconds: of waits and of runs. */
const buckets = [1, 5, 15, 60, 300, 900, 3600]

interface Histogram {
  counts: number[]
  sum: number
  count: number
}

/** What the jobs of this process took and came to, by workflow, and what waits in the whole store, for Prometheus. */
export class WorkflowMetrics {
  readonly #engine: Pick<HttpEngine, 'pools'>
  readonly #waits = new Map<string, Histogram>()
  readonly #runs = new Map<string, Histogram>()
  readonly #attempts = new Map<string, number>()
  readonly #failures = new Map<string, number>()

  constructor(engine: Pick<HttpEngine, 'pools' | 'on'>) {
    this.#engine = engine
    engine.on('job.started', ({ job }) => {
      const { workflow, startedAt, attempts, token, createdAt, notBefore } = job
      increment(this.#attempts, labels({ workflow }))
      // Later attempts have waited for something else.
      if (attempts === 1 && token === 1 && startedAt !== null)
        observe(this.#waits, labels({ workflow }), startedAt - Math.max(createdAt, notBefore))
    })
    engine.on('job.succeeded', ({ job }) => this.#observeRun(job))
    engine.on('job.failed', ({ job }) => {
      this.#observeRun(job)
      const { workflow, error } = job
      increment(this.#failures, labels({ workflow, code: error?.code ?? '', reason: error?.reason ?? '' }))
    })
  }

  async lines(): Promise<string[]> {
    const pools = await this.#engine.pools()
    const gauge = (name: string, help: string, value: (pool: PoolStatus) => number | null) => [
      `# HELP ${name} ${help}`,
      `# TYPE ${name} gauge`,
      ...pools.flatMap((pool) => {
        const found = value(pool)
        return found === null
          ? []
          : [`${name}{${labels({ workflow: pool.workflow, pool: pool.needs.join(' ') })}} ${found}`]
      }),
    ]
    return [
      ...gauge('stemwork_pool_queued', 'Jobs that are due and waiting, in the whole store.', ({ queued }) => queued),
      ...gauge(
        'stemwork_pool_oldest_wait_seconds',
        'How long the first of them has been due.',
        ({ oldestMs }) => oldestMs / 1000,
      ),
      ...gauge('stemwork_pool_running', 'Jobs that run, on all workers.', ({ running }) => running),
      ...gauge('stemwork_pool_workers', 'Active workers that accept such jobs.', ({ workers }) => workers),
      ...gauge('stemwork_pool_slots', 'Number of jobs that these workers run at a time.', ({ slots }) => slots),
      ...gauge(
        'stemwork_pool_backlog_seconds',
        'Waiting work in seconds of one slot, based on the mean of recent jobs; absent until a job has ended.',
        ({ backlogSeconds }) => backlogSeconds,
      ),
      ...counter('stemwork_workflow_attempts_total', 'Attempts that this process began.', this.#attempts),
      ...counter('stemwork_workflow_failures_total', 'Jobs that ended FAILED in this process.', this.#failures),
      ...histogram(
        'stemwork_workflow_wait_seconds',
        'Time from when a job was due to its first attempt here.',
        this.#waits,
      ),
      ...histogram(
        'stemwork_workflow_run_seconds',
        'Time from the first attempt of a job to its end here.',
        this.#runs,
      ),
    ]
  }

  #observeRun({ workflow, status, startedAt, completedAt }: JobRecord): void {
    if (startedAt === null || completedAt === null) return
    observe(this.#runs, labels({ workflow, status }), completedAt - startedAt)
  }
}

function observe(histograms: Map<string, Histogram>, key: string, milliseconds: number): void {
  const seconds = Math.max(0, milliseconds) / 1000
  const known = histograms.get(key) ?? { counts: buckets.map(() => 0), sum: 0, count: 0 }
  histograms.set(key, {
    counts: known.counts.map((count, index) => count + Number(seconds <= (buckets[index] ?? Infinity))),
    sum: known.sum + seconds,
    count: known.count + 1,
  })
}

function increment(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

function counter(name: string, help: string, counts: ReadonlyMap<string, number>): string[] {
  return [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} counter`,
    ...[...counts].map(([key, count]) => `${name}{${key}} ${count}`),
  ]
}

function histogram(name: string, help: string, histograms: ReadonlyMap<string, Histogram>): string[] {
  return [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} histogram`,
    ...[...histograms].flatMap(([key, { counts, sum, count }]) => [
      ...counts.map((below, index) => `${name}_bucket{${key},le="${buckets[index]}"} ${below}`),
      `${name}_bucket{${key},le="+Inf"} ${count}`,
      `${name}_sum{${key}} ${sum}`,
      `${name}_count{${key}} ${count}`,
    ]),
  ]
}

function labels(values: Record<string, string>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}="${value.replace(/[\\"\n]/g, (sign) => (sign === '\n' ? '\\n' : `\\${sign}`))}"`)
    .join(',')
}
