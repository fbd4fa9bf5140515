import type { JobRecord } from '../../core/engine/job/job.js'
import { idOf } from '../../core/engine/job/scheduling.js'
import type { HttpEngine } from '../http-engine.js'
import type { FailureFacts, Overview, QueueFacts, WorkerFacts } from './answers.js'

/** Where counts end: more cost more, and the difference changes no decision. */
const mostCounted = 10_000
/** Jobs that rates and failures are taken from. */
const sampleSize = 500
/** Running jobs whose workers are listed. */
const mostRunning = 500
const dayMs = 24 * 3_600_000
const rateStepMs = 5 * 60_000
const rateSteps = 12
/** Viewers that look at the same time see the same. */
const keptMs = 2_000

/** What happens in the whole store, read at most every two seconds however many look. */
export class OverviewReader {
  readonly #engine: HttpEngine
  #last: { at: number; overview: Promise<Overview> } | undefined

  constructor(engine: HttpEngine) {
    this.#engine = engine
  }

  read(): Promise<Overview> {
    const at = Date.now()
    if (!this.#last || at - this.#last.at >= keptMs) {
      const overview = readOverview(this.#engine, at)
      this.#last = { at, overview }
      overview.catch(() => (this.#last = undefined))
    }
    return this.#last.overview
  }

  /** After a change: who made it wants to see it. */
  forget(): void {
    this.#last = undefined
  }
}

async function readOverview(engine: HttpEngine, at: number): Promise<Overview> {
  const [recent, running, rules, applications, health] = await Promise.all([
    engine.list({ createdAfter: at - dayMs, limit: sampleSize }),
    engine.list({ statuses: ['STARTED'], limit: mostRunning }),
    engine.schedulingRules(),
    engine.applications.listApplications(),
    engine.health(),
  ])
  return {
    at,
    queues: await queuesOf(engine, recent),
    workers: workersOf(running, engine.options.dispatch.leaseMs),
    rates: ratesOf(recent, at),
    failures: failuresOf(recent),
    rules: rules.map(({ target, state, maxRunning }) => ({ kind: target.kind, id: idOf(target), state, maxRunning })),
    applications: applications.map(({ id, name }) => ({ id, name })),
    sample: { jobs: recent.length, complete: recent.length < sampleSize },
    problems: health.problems,
    warnings: health.warnings,
  }
}

async function queuesOf(engine: HttpEngine, recent: readonly JobRecord[]): Promise<QueueFacts[]> {
  const count = (status: 'QUEUED' | 'STARTED', workflows?: string[]) =>
    engine.count({ statuses: [status], workflows }, { max: mostCounted })
  const queues = await Promise.all(
    engine.workflows.list().map(async ({ id, name }): Promise<QueueFacts> => {
      const [queued, running] = await Promise.all([count('QUEUED', [id]), count('STARTED', [id])])
      // The list is newest first, so the last of those that were counted has waited longest.
      const [oldest] =
        queued > 0 ? await engine.list({ statuses: ['QUEUED'], workflows: [id], limit: 1, offset: queued - 1 }) : []
      const isMore = queued >= mostCounted
      const oldestSince = oldest ? Math.max(oldest.createdAt, oldest.notBefore) : null
      return { workflow: id, name, queued, running, isMore, oldestSince, medianMs: medianMs(recent, id) }
    }),
  )
  const [queued, running] = await Promise.all([count('QUEUED'), count('STARTED')])
  const known = queues.reduce(
    (sum, each) => ({ queued: sum.queued + each.queued, running: sum.running + each.running }),
    {
      queued: 0,
      running: 0,
    },
  )
  const others = { queued: Math.max(0, queued - known.queued), running: Math.max(0, running - known.running) }
  if (others.queued + others.running > 0) {
    const unknown = { workflow: '', name: '', isMore: queued >= mostCounted, oldestSince: null, medianMs: null }
    queues.push({ ...unknown, ...others })
  }
  return queues
}

function medianMs(jobs: readonly JobRecord[], workflow: string): number | null {
  const times = jobs
    .filter((job) => job.workflow === workflow && job.status === 'SUCCEEDED')
    .flatMap(({ history }) => history.at(-1) ?? [])
    .flatMap(({ startedAt, endedAt }) => (endedAt === null ? [] : endedAt - startedAt))
    .sort((a, b) => a - b)
  return times[Math.floor(times.length / 2)] ?? null
}

function workersOf(running: readonly JobRecord[], leaseMs: number): WorkerFacts[] {
  const workers = new Map<string, WorkerFacts>()
  for (const { id, workflow, stage, progress, lease, history, startedAt } of running) {
    if (!lease) continue
    const worker = workers.get(lease.owner) ?? { name: lease.owner, seenAt: 0, jobs: [] }
    workers.set(lease.owner, worker)
    worker.seenAt = Math.max(worker.seenAt, lease.until - leaseMs)
    worker.jobs.push({ id, workflow, stage, progress, startedAt: history.at(-1)?.startedAt ?? startedAt ?? 0 })
  }
  return [...workers.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}

function ratesOf(jobs: readonly JobRecord[], at: number): Overview['rates'] {
  const end = Math.ceil(at / rateStepMs) * rateStepMs
  return Array.from({ length: rateSteps }, (_, step) => {
    const from = end - (rateSteps - step) * rateStepMs
    const ended = jobs.filter(
      ({ completedAt }) => completedAt !== null && completedAt >= from && completedAt < from + rateStepMs,
    )
    const succeeded = ended.filter(({ status }) => status === 'SUCCEEDED').length
    return { from, succeeded, failed: ended.length - succeeded }
  })
}

function failuresOf(jobs: readonly JobRecord[]): FailureFacts[] {
  const failures = new Map<string, FailureFacts>()
  for (const { id, error, completedAt } of jobs) {
    if (!error || completedAt === null) continue
    const { code, reason, title, message } = error
    const key = `${code} ${reason}`
    const known = failures.get(key)
    const last = known && known.last.at > completedAt ? known.last : { id, at: completedAt, message }
    failures.set(key, { code, reason, title, jobs: (known?.jobs ?? 0) + 1, last })
  }
  return [...failures.values()].sort((a, b) => b.jobs - a.jobs)
}
