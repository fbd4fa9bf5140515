import type { JobRecord } from '../../../core/engine/job/job.js'
import { queueFull } from '../../../core/engine/job/queue-limit.js'
import { addUsage, dayOf, noUsage, quotaExceeded, type Usage } from '../../../core/engine/job/quota.js'
import type { CreateOptions } from '../../../core/engine/ports/job-store.js'
import type { JobIndex } from '../shared/job-index.js'

export type Admission = ReturnType<typeof admission>

/** What applications have used today, and whether they may add jobs. */
export function admission(index: JobIndex<JobRecord>, clock: () => number) {
  let day = 0
  let byApp = new Map<string, Usage>()
  const used = (app: string) => (day === dayOf(clock()) ? (byApp.get(app) ?? noUsage) : noUsage)
  const count = (app: string, more: Partial<Usage>) => {
    const today = dayOf(clock())
    if (day !== today) byApp = new Map()
    day = today
    byApp.set(app, addUsage(byApp.get(app) ?? noUsage, more))
  }
  /** Counts more jobs against the quota. @throws StemworkError `QUEUE_FULL`, `QUOTA_EXCEEDED`. */
  const admit = (app: string, { maxQueued = Infinity, quota }: Omit<CreateOptions, 'tx'>, more = 1) => {
    if (index.queued(app) + more > Math.ceil(maxQueued)) throw queueFull(maxQueued)
    if (!quota) return
    const refused = quotaExceeded(quota, used(app), more, clock())
    if (refused) throw refused
    count(app, { jobs: more })
  }
  return { used, count, admit }
}
