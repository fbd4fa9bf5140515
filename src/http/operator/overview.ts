import type { PoolStatus, Worker } from '../../core/engine/engine.js'
import type { JobRecord } from '../../core/engine/job/job.js'
import { idOf } from '../../core/engine/job/scheduling.js'
import { remembered } from '../../core/engine/limits/remembered.js'
import type { HttpEngine } from '../http-engine.js'
import { type Ended, EndedCounts } from './ended-counts.js'
import type { Overview, QueueFacts, UsageFacts, WorkerFacts } from './answers.js'
import { StemworkError } from '../../core/engine/errors.js'
import { mostCounted } from '../../core/engine/ports/job-store.js'

/** Most running jobs that are shown with their workers. */
const mostRunning = 500
/** Simultaneous viewers share a result for this long. */
const keptMs = 2_000
/** Usage of applications is read less often. */
const usageKeptMs = 60_000
const mostUsers = 50

/** The state of the whole store, read at most every two seconds for any number of viewers. */
export function overviewReader(engine: HttpEngine) {
  const ended = new EndedCounts(engine)
  const usage = remembered(() => usageOf(engine, Date.now()), usageKeptMs)
  const fromNowOn = () => remembered(() => readOverview(engine, ended, usage), keptMs)
  let read = fromNowOn()
  return {
    read: () => read(),
    /** Call after a change, so that its author sees it. */
    forget() {
      read = fromNowOn()
    },
  }
}

async function readOverview(
  engine: HttpEngine,
  counts: EndedCounts,
  readUsage: () => Promise<UsageFacts[]>,
): Promise<Overview> {
  const at = Date.now()
  const [running, pools, workers, rules, applications, health, ended, usage] = await Promise.all([
    engine.list({ statuses: ['STARTED'], limit: mostRunning }),
    engine.pools(),
    engine.workers(),
    engine.schedulingRules(),
    engine.applications.listApplications(),
    engine.health(),
    counts.read(at),
    readUsage(),
  ])
  return {
    at,
    queues: queuesOf(engine, { pools, workers, medianMs: ended?.medianMs }),
    workers: workersOf(workers, running, engine.options.dispatch.leaseMs),
    rates: ended?.rates ?? [],
    failures: ended?.failures ?? [],
    isCounted: ended !== undefined,
    rules: rules.map(({ target, state, maxRunning }) => ({ kind: target.kind, id: idOf(target), state, maxRunning })),
    applications: applications.map(({ id, name }) => ({ id, name })),
    usage,
    problems: health.problems,
    warnings: health.warnings,
  }
}

async function usageOf(engine: HttpEngine, at: number): Promise<UsageFacts[]> {
  const firstDay = Date.parse(`${new Date(at).toISOString().slice(0, 7)}-01`)
  const totals = await engine.usageTotals({ from: firstDay, to: at, groupBy: ['app'] }).catch((error: unknown) => {
    // The store keeps no ledger.
    if (StemworkError.is(error) && error.code === 'NOT_FOUND') return []
    throw error
  })
  return totals
    .map(({ app = '', jobs, succeeded, audioSeconds, processorSeconds }) => {
      return { app, jobs, failed: jobs - succeeded, audioSeconds, processorSeconds }
    })
    .sort((a, b) => b.processorSeconds - a.processorSeconds)
    .slice(0, mostUsers)
}

function queuesOf(
  engine: HttpEngine,
  { pools, workers, medianMs }: { pools: PoolStatus[]; workers: Worker[]; medianMs: Ended['medianMs'] | undefined },
): QueueFacts[] {
  const nameOf = (id: string) => engine.workflows.get(id)?.name ?? null
  const queues = pools.map(({ workflow, needs, queued, oldestMs, running, workers, slots }): QueueFacts => {
    const counts = { queued, running, isMore: queued >= mostCounted, workers, slots }
    const longestWaitMs = queued > 0 ? oldestMs : null
    return {
      workflow,
      name: nameOf(workflow),
      needs,
      ...counts,
      longestWaitMs,
      medianMs: medianMs?.get(workflow) ?? null,
    }
  })
  // Workflows without jobs can be controlled, too.
  for (const { id, name } of engine.workflows.list()) {
    if (queues.some(({ workflow }) => workflow === id)) continue
    const able = workers.filter(({ workflows }) => workflows.includes(id))
    const slots = able.reduce((sum, worker) => sum + worker.slots, 0)
    const counts = { queued: 0, running: 0, isMore: false, longestWaitMs: null, workers: able.length, slots }
    queues.push({ workflow: id, name, needs: [], ...counts, medianMs: medianMs?.get(id) ?? null })
  }
  return queues.sort((a, b) => compare(a.name ?? a.workflow, b.name ?? b.workflow) || a.needs.length - b.needs.length)
}

function compare(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1
}

/** Live workers, including idle ones, and workers known only from their jobs. */
function workersOf(alive: readonly Worker[], running: readonly JobRecord[], leaseMs: number): WorkerFacts[] {
  const workers = alive.map(({ owner, state, slots, labels, workflows, startedAt, seenAt }): WorkerFacts => {
    return { name: owner, offers: { state, slots, labels, workflows, startedAt }, seenAt, jobs: [] }
  })
  // Two workers may share a name; the first is then shown with the jobs of both.
  const byName = new Map(workers.toReversed().map((worker) => [worker.name, worker]))
  for (const { id, workflow, stage, progress, lease, history, startedAt } of running) {
    if (!lease) continue
    let worker = byName.get(lease.owner)
    if (!worker) {
      worker = { name: lease.owner, offers: null, seenAt: 0, jobs: [] }
      byName.set(lease.owner, worker)
      workers.push(worker)
    }
    worker.seenAt = Math.max(worker.seenAt, lease.until - leaseMs)
    worker.jobs.push({ id, workflow, stage, progress, startedAt: history.at(-1)?.startedAt ?? startedAt ?? 0 })
  }
  return workers.sort((a, b) => compare(a.name, b.name))
}
