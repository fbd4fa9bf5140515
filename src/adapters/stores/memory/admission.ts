import type { JobRecord } from '../../../core/engine/job/job.js'
import { queueFull } from '../../../core/engine/job/queue-limit.js'
import { addUsage, dayOf, noUsage, quotaExceeded, type Usage } from '../../../core/engine/job/quota.js'
import type { CreateOptions } from '../../../core/engine/ports/job-store.js'
import type { JobIndex } from '../shared/job-index.js'

/** What applications have used today, and whether they may add jobs. */
export class Admission {
  readonly #index: JobIndex<JobRecord>
  readonly #clock: () => number
  #day = 0
  #byApp = new Map<string, Usage>()

  constructor(index: JobIndex<JobRecord>, clock: () => number) {
    this.#index = index
    this.#clock = clock
  }

  used(app: string): Usage {
    return this.#day === dayOf(this.#clock()) ? (this.#byApp.get(app) ?? noUsage) : noUsage
  }

  count(app: string, more: Partial<Usage>): void {
    const today = dayOf(this.#clock())
    if (this.#day !== today) this.#byApp = new Map()
    this.#day = today
    this.#byApp.set(app, addUsage(this.#byApp.get(app) ?? noUsage, more))
  }

  /** Counts more jobs against the quota. @throws StemworkError `QUEUE_FULL`, `QUOTA_EXCEEDED`. */
  admit(app: string, { maxQueued = Infinity, quota }: Omit<CreateOptions, 'tx'>, more = 1): void {
    if (this.#index.queued(app) + more > Math.ceil(maxQueued)) throw queueFull(maxQueued)
    if (!quota) return
    const refused = quotaExceeded(quota, this.used(app), more, this.#clock())
    if (refused) throw refused
    this.count(app, { jobs: more })
  }
}
