import { type JobRecord, type JobStatus, jobStatusSchema } from '../../../core/engine/job/job.js'
import { resultBytes } from '../../../core/engine/job/result-bytes.js'
import type { RuleTarget } from '../../../core/engine/job/scheduling.js'
import { type JobQuery, matcherOf } from '../../../core/engine/ports/job-query.js'
import type { JobPage } from '../../../core/engine/ports/job-store.js'
import type { IndexedJob } from './indexed-job.js'
import { SortedList } from './sorted-list.js'

/** Of all jobs, or of those of an application. */
interface Group<Entry extends { job: IndexedJob }> {
  entries: SortedList<Entry>
  counts: Record<JobStatus, number>
}

/** The jobs that readers see, in the order of lists: all but those that are marked deleted. */
export class VisibleJobs<Job extends IndexedJob, Entry extends { job: Job }> {
  readonly #byKey = new Map<string, Entry>()
  readonly #byUpload = new Map<string, Set<Entry>>()
  readonly #byApp = new Map<string, Group<Entry>>()
  readonly #everything = newGroup<Entry>()

  add(entry: Entry): void {
    const { job } = entry
    for (const group of this.#groupsOf(job)) {
      group.entries.add(entry)
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

  /** How many run, of an application or of all. */
  running(target: Exclude<RuleTarget, { kind: 'workflow' }>): number {
    const group = target.kind === 'deployment' ? this.#everything : this.#byApp.get(target.id)
    return group?.counts.STARTED ?? 0
  }

  count(query: JobQuery, max = Infinity): number {
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
    for (const _job of this.select(query)) if (++total >= max) break
    return total
  }

  /** Bytes of the result files that the application's jobs keep. */
  resultBytes(app: string): number {
    let total = 0
    for (const job of this.select({ app, statuses: ['SUCCEEDED'] })) total += resultBytes(job)
    return total
  }

  /** Newest first. Nothing must be changed before the iteration has ended. */
  *select(query: JobQuery, after?: JobPage['after']): Generator<Job> {
    const { createdAfter = -Infinity, createdBefore = Infinity } = query
    const matches = matcherOf(query)
    const newest = this.#candidates(query).descendingBefore(
      ({ job }) => job.createdAt >= createdBefore || (after !== undefined && compareJobs(job, after) >= 0),
    )
    for (const { job } of newest) {
      if (job.createdAt < createdAfter) return
      if (matches(job)) yield job
    }
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
    counts: { QUEUED: 0, STARTED: 0, SUCCEEDED: 0, FAILED: 0 },
  }
}

function compareJobs(a: { createdAt: number; id: string }, b: { createdAt: number; id: string }): number {
  return a.createdAt - b.createdAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)
}

/** Neither part can imitate the other's end: the length comes first. */
function keyOf(app: string, key: string): string {
  return `${app.length}:${app}${key}`
}
