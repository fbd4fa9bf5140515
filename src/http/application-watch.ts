import type { JobRecord } from '../core/engine/job/job.js'
import type { EngineEventName } from '../core/engine/events.js'
import type { HttpEngine } from './http-engine.js'

/** Messages to the followers of an application's jobs. */
export type JobChange = { kind: 'job'; job: JobRecord } | { kind: 'deleted'; id: string } | { kind: 'idle' }

const events: readonly EngineEventName[] = [
  'job.created',
  'job.started',
  'job.progressed',
  'job.requeued',
  'job.succeeded',
  'job.failed',
  'job.deleted',
]

/** Other processes change jobs without an event here; this is how late that is noticed. */
const pollMs = 2000
/** Newest jobs and running jobs that a poll reads. */
const polledJobs = 50

/**
 * The changes of an application's jobs from now on: of this process at once, of others by a poll. Changes of one job
 * while the follower is busy are merged.
 */
export async function* applicationChanges(
  engine: Pick<HttpEngine, 'list' | 'get' | 'on' | 'off'>,
  { app, signal, idleMs }: { app: string; signal: AbortSignal; idleMs: number },
): AsyncGenerator<JobChange, void, undefined> {
  const changed = new Map<string, JobChange>()
  const shown = new Map<string, string>()
  let wake = () => {}
  const onChange = ({ job }: { job: JobRecord }) => {
    if (job.app !== app) return
    // The record of a deleted job says so, and nothing may revive it.
    changed.set(job.id, job.deleted ? { kind: 'deleted', id: job.id } : { kind: 'job', job })
    wake()
  }
  const onAbort = () => wake()
  for (const event of events) engine.on(event, onChange)
  signal.addEventListener('abort', onAbort)
  try {
    await poll(engine, app, shown)
    let polledAt = performance.now()
    let saidAt = performance.now()
    while (!signal.aborted) {
      for (const [id, change] of changed) {
        changed.delete(id)
        if (!isNews(change, shown)) continue
        saidAt = performance.now()
        yield change
      }
      if (performance.now() - polledAt >= pollMs) {
        polledAt = performance.now()
        for (const change of await poll(engine, app, shown)) {
          saidAt = performance.now()
          yield change
        }
      } else if (performance.now() - saidAt >= idleMs) {
        saidAt = performance.now()
        yield { kind: 'idle' }
      }
      if (changed.size > 0 || signal.aborted) continue
      let timer: NodeJS.Timeout | undefined
      await new Promise<void>((resolve) => {
        wake = resolve
        timer = setTimeout(resolve, Math.min(pollMs, idleMs))
      })
      clearTimeout(timer)
    }
  } finally {
    signal.removeEventListener('abort', onAbort)
    for (const event of events) engine.off(event, onChange)
  }
}

/** What is new in the store. Fills `shown` the first time. */
async function poll(
  engine: Pick<HttpEngine, 'list' | 'get'>,
  app: string,
  shown: Map<string, string>,
): Promise<JobChange[]> {
  const [active, newest] = await Promise.all([
    engine.list({ app, statuses: ['QUEUED', 'STARTED'], limit: polledJobs }),
    engine.list({ app, limit: polledJobs }),
  ])
  const seen = new Map([...active, ...newest].map((job) => [job.id, job]))
  const changes: JobChange[] = [...seen.values()].map((job) => ({ kind: 'job', job }))
  for (const id of shown.keys()) {
    if (seen.has(id)) continue
    const job = await engine.get(id, { app })
    changes.push(job ? { kind: 'job', job } : { kind: 'deleted', id })
  }
  const news = changes.filter((change) => isNews(change, shown))
  // A job too old for the next poll is read again only after another change.
  for (const change of changes) if (change.kind === 'job' && !seen.has(change.job.id)) shown.delete(change.job.id)
  return news
}

/** Whether the follower does not know it yet; it does from then on. */
function isNews(change: JobChange, shown: Map<string, string>): boolean {
  switch (change.kind) {
    case 'job': {
      const state = stateOf(change.job)
      if (shown.get(change.job.id) === state) return false
      shown.set(change.job.id, state)
      return true
    }
    case 'deleted':
      shown.delete(change.id)
      return true
    case 'idle':
      return true
    default:
      return change satisfies never
  }
}

function stateOf({ status, progress, stage, attempts }: JobRecord): string {
  return JSON.stringify([status, progress, stage, attempts])
}
