import { deliverableAt, lapsesAt, removableAt, waitingSince } from '../../../core/engine/job/due-times.js'
import { isTerminal, type JobRecord, type JobStatus } from '../../../core/engine/job/job.js'
import { resultBytes } from '../../../core/engine/job/result-bytes.js'
import type { DueKind, JobPage, JobQuery } from '../../../core/engine/ports/job-store.js'
import { ClaimOrder, firstDue } from './claim-order.js'
import { Agenda, type AgendaEntry } from './due-queue.js'
import { SortedList } from './sorted-list.js'

/** What of a job the index looks at. */
export type IndexedJob = Pick<
  JobRecord,
  | 'id'
  | 'app'
  | 'workflow'
  | 'uploads'
  | 'batchName'
  | 'status'
  | 'createdAt'
  | 'completedAt'
  | 'expiresAt'
  | 'expired'
  | 'outputs'
  | 'lease'
  | 'notBefore'
  | 'deleted'
  | 'idempotency'
  | 'deliveries'
>

/** A job's place in the index; the job in it is replaced, never changed. */
interface Slot<Job> {
  job: Job
  waiting: AgendaEntry<Slot<Job>> | undefined
  lapsing: AgendaEntry<Slot<Job>> | undefined
  removable: AgendaEntry<Slot<Job>> | undefined
  deliverable: AgendaEntry<Slot<Job>> | undefined
  ended: AgendaEntry<Slot<Job>> | undefined
}

interface Shelf<Job> {
  slots: SortedList<Slot<Job>>
  counts: Record<JobStatus, number>
}

/** The jobs of one process by everything that a `JobStore` is asked for, without a scan. */
export class JobIndex<Job extends IndexedJob> {
  readonly #slots = new Map<string, Slot<Job>>()
  readonly #byKey = new Map<string, Slot<Job>>()
  readonly #byUpload = new Map<string, Set<Slot<Job>>>()
  readonly #byApp = new Map<string, Shelf<Job>>()
  readonly #everything = newShelf<Job>()
  readonly #waiting = new ClaimOrder<Slot<Job>>()
  readonly #lapsing = new Agenda<Slot<Job>>()
  readonly #removable = new Agenda<Slot<Job>>()
  readonly #deliverable = new Agenda<Slot<Job>>()
  readonly #ended = new Agenda<Slot<Job>>()
  readonly #deleted = new Set<Slot<Job>>()

  /** Also a job that is marked deleted. */
  get(id: string): Job | undefined {
    return this.#slots.get(id)?.job
  }

  /** Enters the job, or the next state of one that is in the index: `createdAt`, `app` and `uploads` of a job never change. */
  set(job: Job): void {
    const slot = this.#slots.get(job.id)
    if (slot) return this.#replace(slot, job)
    const entered: Slot<Job> = {
      job,
      waiting: undefined,
      lapsing: undefined,
      removable: undefined,
      deliverable: undefined,
      ended: undefined,
    }
    this.#slots.set(job.id, entered)
    if (job.deleted) this.#deleted.add(entered)
    else this.#show(entered)
    this.#schedule(entered)
  }

  remove(id: string): void {
    const slot = this.#slots.get(id)
    if (!slot) return
    if (!slot.job.deleted) this.#replace(slot, { ...slot.job, deleted: true })
    this.#deleted.delete(slot)
    this.#slots.delete(id)
  }

  /** The job that was made last with this idempotency key and is not deleted, however long ago. */
  withIdempotencyKey(app: string, key: string): Job | undefined {
    return this.#byKey.get(keyOf(app, key))?.job
  }

  /**
   * The job to claim next by the rule of `JobStore.claim`, but none of those in `taken` or of `exceptApps`. Counts as its
   * application's turn.
   */
  takeNext(now: number, exceptApps: readonly string[] = [], taken: Iterable<string> = []): Job | undefined {
    const slots = new Set<Slot<Job>>()
    for (const id of taken) {
      const slot = this.#slots.get(id)
      if (slot) slots.add(slot)
    }
    const lapsed =
      exceptApps.length === 0
        ? firstDue(this.#lapsing, now, slots)
        : this.#lapsing.due(now, Infinity).find((slot) => !slots.has(slot) && !exceptApps.includes(slot.job.app))
    return (lapsed ?? this.#waiting.take(now, slots, exceptApps))?.job
  }

  due(kind: DueKind, now: number, limit: number, exceptApps: readonly string[] = []): Job[] {
    if (exceptApps.length > 0) {
      const others = this.due(kind, now, Infinity).filter(({ app }) => !exceptApps.includes(app))
      return others.slice(0, Math.max(limit, 0))
    }
    switch (kind) {
      case 'lapsed':
        return jobsOf(this.#lapsing.due(now, limit))
      case 'expired':
        return jobsOf(this.#removable.due(now, limit))
      case 'deliverable':
        return jobsOf(this.#deliverable.due(now, limit))
      case 'deleted':
        return jobsOf([...this.#deleted].slice(0, Math.max(limit, 0)))
      default:
        return kind satisfies never
    }
  }

  /** Jobs that ended earlier than `time` and are not marked deleted, the earliest first. */
  endedBefore(time: number, limit: number): Job[] {
    return jobsOf(this.#ended.due(time - 1, limit))
  }

  count(query: JobQuery): number {
    const { app, statuses, ...rest } = query
    if (Object.values(rest).every((value) => value === undefined)) {
      const shelf = app === undefined ? this.#everything : this.#byApp.get(app)
      if (!shelf) return 0
      if (!statuses) return shelf.slots.size
      return [...new Set(statuses)].reduce((sum, status) => sum + shelf.counts[status], 0)
    }
    let total = 0
    for (const _job of this.select(query)) total++
    return total
  }

  /** Bytes of the result files that the application's jobs keep. */
  resultBytes(app: string): number {
    let total = 0
    for (const job of this.select({ app, statuses: ['SUCCEEDED'] })) total += resultBytes(job)
    return total
  }

  /** Newest first. The index must not be changed before the iteration has ended. */
  *select(query: JobQuery, after?: JobPage['after']): Generator<Job> {
    const { createdAfter = -Infinity, createdBefore = Infinity } = query
    const newest = this.#candidates(query).descendingBefore(
      ({ job }) => job.createdAt >= createdBefore || (after !== undefined && compareJobs(job, after) >= 0),
    )
    for (const { job } of newest) {
      if (job.createdAt < createdAfter) return
      if (matchesFilters(job, query)) yield job
    }
  }

  #replace(slot: Slot<Job>, next: Job): void {
    const previous = slot.job
    slot.job = next
    if (next.deleted && !previous.deleted) {
      this.#hide(slot, previous)
      this.#deleted.add(slot)
    } else if (next.status !== previous.status) {
      for (const shelf of this.#shelvesOf(next)) {
        shelf.counts[previous.status]--
        shelf.counts[next.status]++
      }
    }
    this.#schedule(slot)
  }

  #schedule(slot: Slot<Job>): void {
    const { job } = slot
    slot.waiting = this.#waiting.set(job.app, slot.waiting, slot, waitingSince(job))
    slot.lapsing = this.#lapsing.set(slot.lapsing, slot, lapsesAt(job))
    slot.removable = this.#removable.set(slot.removable, slot, removableAt(job))
    slot.deliverable = this.#deliverable.set(slot.deliverable, slot, deliverableAt(job))
    slot.ended = this.#ended.set(slot.ended, slot, job.deleted || !isTerminal(job) ? null : job.completedAt)
  }

  /** Enters a job where readers find it. */
  #show(slot: Slot<Job>): void {
    const { job } = slot
    for (const shelf of this.#shelvesOf(job)) {
      shelf.slots.add(slot)
      shelf.counts[job.status]++
    }
    if (job.idempotency) {
      const key = keyOf(job.app, job.idempotency.key)
      const other = this.#byKey.get(key)
      if (!other || compareJobs(other.job, job) < 0) this.#byKey.set(key, slot)
    }
    for (const key of Object.values(job.uploads)) {
      const users = this.#byUpload.get(key)
      if (users) users.add(slot)
      else this.#byUpload.set(key, new Set([slot]))
    }
  }

  /** @param job the state under which the slot was shown. */
  #hide(slot: Slot<Job>, job: Job): void {
    for (const shelf of this.#shelvesOf(job)) {
      shelf.slots.remove(slot)
      shelf.counts[job.status]--
    }
    if (this.#byApp.get(job.app)?.slots.size === 0) this.#byApp.delete(job.app)
    if (job.idempotency) {
      const key = keyOf(job.app, job.idempotency.key)
      // A later job may have taken over a key whose time had passed.
      if (this.#byKey.get(key) === slot) this.#byKey.delete(key)
    }
    for (const key of Object.values(job.uploads)) {
      const users = this.#byUpload.get(key)
      if (users?.delete(slot) && users.size === 0) this.#byUpload.delete(key)
    }
  }

  #shelvesOf(job: Job): Shelf<Job>[] {
    let shelf = this.#byApp.get(job.app)
    if (!shelf) this.#byApp.set(job.app, (shelf = newShelf()))
    return [this.#everything, shelf]
  }

  #candidates({ app, uploadKey }: JobQuery): SortedList<Slot<Job>> {
    if (uploadKey === undefined)
      return app === undefined ? this.#everything.slots : (this.#byApp.get(app)?.slots ?? newShelf<Job>().slots)
    const users = newShelf<Job>().slots
    for (const slot of this.#byUpload.get(uploadKey) ?? []) users.add(slot)
    return users
  }
}

/** Whether the job has what the query asks for, its times and inputs aside, which never change. */
export function matchesFilters(job: IndexedJob, { app, statuses, workflows, batchName }: JobQuery): boolean {
  return (
    (app === undefined || job.app === app) &&
    (statuses === undefined || statuses.includes(job.status)) &&
    (workflows === undefined || workflows.includes(job.workflow)) &&
    (batchName === undefined || job.batchName === batchName)
  )
}

function jobsOf<Job>(slots: Slot<Job>[]): Job[] {
  return slots.map((slot) => slot.job)
}

function newShelf<Job extends IndexedJob>(): Shelf<Job> {
  return {
    slots: new SortedList<Slot<Job>>((a, b) => compareJobs(a.job, b.job)),
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
