import { setImmediate } from 'node:timers/promises'
import { type JobRecord, type JobStatus, jobStatusSchema } from '../../../core/engine/job/job.js'
import { resultBytes } from '../../../core/engine/job/result-bytes.js'
import type { RuleTarget } from '../../../core/engine/job/scheduling.js'
import { type JobQuery, matcherOf } from '../../../core/engine/ports/job-query.js'
import type { JobPage } from '../../../core/engine/ports/job-store.js'
import type { IndexedJob } from './indexed-job.js'
import { SortedList } from './sorted-list.js'

/** All jobs, or those of an application. */
interface Group<Entry extends { job: IndexedJob }> {
  entries: SortedList<Entry>
  recordBytes: number
  counts: Record<JobStatus, number>
}

/** Jobs that are looked at in one pass of the event loop: a millisecond or two if names are searched for words. */
const pieceJobs = 500

/** The jobs that readers see, in the order of lists: all but those that are marked deleted. */
export class VisibleJobs<Job extends IndexedJob, Entry extends { job: Job; recordBytes: number }> {
  readonly #byKey = new Map<string, Entry>()
  readonly #byUpload = new Map<string, Set<Entry>>()
  readonly #byApp = new Map<string, Group<Entry>>()
  readonly #everything = newGroup<Entry>()

  add(entry: Entry): void {
    const { job } = entry
    for (const group of this.#groupsOf(job)) {
      group.entries.add(entry)
      group.recordBytes += entry.recordBytes
      group.counts[job.status]++
    }
    if (job.idempotency) {
      const key = keyOf(job.app, job.idempotency.key)
      const other = this.#byKey.get(key)
      if (!other || compareJobs(other.job, job) < 0) this.#byKey.set(key, entry)
    }
    for (const key of Object.values(job.uploads)) {
      const users = this.#byUpload.get(key)
      if (users) users.add(entry)
      else this.#byUpload.set(key, new Set([entry]))
    }
  }

  /** @param job the state under which the entry was added, or to which it changed since */
  remove(entry: Entry, job: Job): void {
    for (const group of this.#groupsOf(job)) {
      group.entries.remove(entry)
      group.recordBytes -= entry.recordBytes
      group.counts[job.status]--
    }
    if (this.#byApp.get(job.app)?.entries.size === 0) this.#byApp.delete(job.app)
    if (job.idempotency) {
      const key = keyOf(job.app, job.idempotency.key)
      // A later job may have taken over an expired key.
      if (this.#byKey.get(key) === entry) this.#byKey.delete(key)
    }
    for (const key of Object.values(job.uploads)) {
      const users = this.#byUpload.get(key)
      if (users?.delete(entry) && users.size === 0) this.#byUpload.delete(key)
    }
  }

  changeStatus(previous: Job, next: Job): void {
    for (const group of this.#groupsOf(next)) {
      group.counts[previous.status]--
      group.counts[next.status]++
    }
  }

  /** The job that was made last with this idempotency key, however long ago. */
  withIdempotencyKey(app: string, key: string): Job | undefined {
    return this.#byKey.get(keyOf(app, key))?.job
  }

  /** Number of running jobs, of an application or of all. */
  running(target: Exclude<RuleTarget, { kind: 'workflow' }>): number {
    const group = target.kind === 'deployment' ? this.#everything : this.#byApp.get(target.id)
    return group?.counts.STARTED ?? 0
  }

  /** Number of queued jobs of an application. */
  queued(app: string): number {
    return this.#byApp.get(app)?.counts.QUEUED ?? 0
  }

  async count(query: JobQuery, max = Infinity): Promise<number> {
    const { app, statuses, ...rest } = query
    if (Object.values(rest).every((value) => value === undefined)) {
      const group = app === undefined ? this.#everything : this.#byApp.get(app)
      if (!group) return 0
      const total = [...new Set(statuses ?? jobStatusSchema.options)].reduce(
        (sum, status) => sum + group.counts[status],
        0,
      )
      return Math.min(total, max)
    }
    let total = 0
    if (max <= 0) return 0
    await this.each(query, undefined, () => ++total < max)
    return total
  }

  /** Bytes that the records of the application's jobs take. */
  recordBytes(app: string): number {
    return this.#byApp.get(app)?.recordBytes ?? 0
  }

  /** Bytes of the result files that the application's jobs keep. */
  async resultBytes(app: string): Promise<number> {
    let total = 0
    await this.each({ app, statuses: ['SUCCEEDED'] }, undefined, (job) => {
      total += resultBytes(job)
      return true
    })
    return total
  }

  /**
   * Calls `visit` for the jobs that match, newest first, until it returns false. After every few hundred jobs, other
   * work has its turn; each job is seen as it is then.
   */
  async each(query: JobQuery, after: JobPage['after'], visit: (job: Job) => boolean): Promise<void> {
    const candidates = this.#candidates(query)
    const { createdAfter = -Infinity, createdBefore = Infinity } = query
    const matches = matcherOf(query)
    /** Visits a piece of the jobs. Returns where it ended; `undefined`: that was the last piece. */
    const piece = (from: JobPage['after']): JobPage['after'] => {
      let looked = 0
      const newest = candidates.descendingBefore(
        ({ job }) => job.createdAt >= createdBefore || (from !== undefined && compareJobs(job, from) >= 0),
      )
      for (const { job } of newest) {
        if (job.createdAt < createdAfter) return undefined
        if (matches(job) && !visit(job)) return undefined
        if (++looked === pieceJobs) return job
      }
      return undefined
    }
    for (let from = piece(after); from; from = piece(from)) await setImmediate()
  }

  #groupsOf({ app }: Pick<JobRecord, 'app'>): Group<Entry>[] {
    let group = this.#byApp.get(app)
    if (!group) this.#byApp.set(app, (group = newGroup()))
    return [this.#everything, group]
  }

  #candidates({ app, uploadKey }: JobQuery): SortedList<Entry> {
    if (uploadKey === undefined)
      return app === undefined ? this.#everything.entries : (this.#byApp.get(app)?.entries ?? newGroup<Entry>().entries)
    const users = newGroup<Entry>().entries
    for (const entry of this.#byUpload.get(uploadKey) ?? []) users.add(entry)
    return users
  }
}

function newGroup<Entry extends { job: IndexedJob }>(): Group<Entry> {
  return {
    entries: new SortedList<Entry>((a, b) => compareJobs(a.job, b.job)),
    recordBytes: 0,
    counts: { QUEUED: 0, STARTED: 0, SUCCEEDED: 0, FAILED: 0 },
  }
}

function compareJobs(a: { createdAt: number; id: string }, b: { createdAt: number; id: string }): number {
  return a.createdAt - b.createdAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)
}

/** The length comes first, so that no other application and key have the same text. */
function keyOf(app: string, key: string): string {
  return `${app.length}:${app}${key}`
}
