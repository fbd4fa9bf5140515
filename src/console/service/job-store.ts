import type { Job, JobStatus } from '../../client/client.js'

/** Number of jobs kept with all their facts; of others, the store keeps only the status. */
const mostKept = 500

export interface JobChange {
  id: string
  /** Undefined if it was deleted. */
  job: Job | undefined
  /** Its status before; undefined if the page did not know it. */
  before: JobStatus | undefined
  /** True for an answer to a request of this page; false for a change that has just happened. */
  isRead: boolean
}

/**
 * The page's knowledge of jobs. Every change has a revision, higher than those before; an answer has the revision of
 * its request, so it overwrites no change that arrived in between.
 */
export class JobStore {
  #revision = 0
  #connectedAt = 0
  readonly #known = new Map<string, { revision: number; status: JobStatus | 'deleted' }>()
  /** The most recently used at the end. */
  readonly #jobs = new Map<string, Job>()
  readonly #listeners = new Set<(change: JobChange) => void>()

  /** The revision of a request that is sent now. */
  next(): number {
    return ++this.#revision
  }

  /** From now on the stream reports everything; what was read before may have changed unnoticed. */
  connected(): void {
    this.#connectedAt = this.next()
  }

  get connectedAt(): number {
    return this.#connectedAt
  }

  get(id: string): Job | undefined {
    const job = this.#jobs.get(id)
    if (job) this.#keep(job)
    return job
  }

  isDeleted(id: string): boolean {
    return this.#known.get(id)?.status === 'deleted'
  }

  /** Whether a change of the job arrived after this revision. */
  isHeardSince(id: string, revision: number): boolean {
    return (this.#known.get(id)?.revision ?? 0) > revision
  }

  /** Stores a change from the stream. */
  tell(job: Job): void {
    const wasQueued = this.#statusOf(job.id) === 'QUEUED'
    this.#moveBehind(job, Number(job.status === 'QUEUED') - Number(wasQueued))
    this.#set(job, this.next(), false)
  }

  tellDeleted(id: string): void {
    const before = this.#statusOf(id)
    const job = this.#jobs.get(id)
    this.#known.set(id, { revision: this.next(), status: 'deleted' })
    this.#jobs.delete(id)
    if (job && before === 'QUEUED') this.#moveBehind(job, -1)
    this.#notify({ id, job: undefined, before, isRead: false })
  }

  /** Stores an answer. @param revision revision of its request */
  read(jobs: readonly Job[], revision: number): void {
    for (const job of jobs) if (!this.isHeardSince(job.id, revision)) this.#set(job, revision, true)
  }

  onChange(listener: (change: JobChange) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  #set(job: Job, revision: number, isRead: boolean): void {
    const before = this.#statusOf(job.id)
    this.#known.set(job.id, { revision, status: job.status })
    this.#keep(job)
    this.#notify({ id: job.id, job, before, isRead })
  }

  /** The stream reports a job's position when that job changes, not when another one leaves the queue. */
  #moveBehind({ priority = 0, createdAt, id: first }: Job, places: number): void {
    if (places === 0) return
    for (const [id, job] of this.#jobs) {
      const below = priority - (job.priority ?? 0)
      const isBehind = below === 0 ? job.createdAt + id > createdAt + first : below > 0
      if (job.status === 'QUEUED' && isBehind && job.queuePosition)
        this.#jobs.set(id, { ...job, queuePosition: Math.max(1, job.queuePosition + places) })
    }
  }

  #keep(job: Job): void {
    this.#jobs.delete(job.id)
    this.#jobs.set(job.id, job)
    const [oldest] = this.#jobs.keys()
    if (oldest !== undefined && this.#jobs.size > mostKept) this.#jobs.delete(oldest)
  }

  #statusOf(id: string): JobStatus | undefined {
    const status = this.#known.get(id)?.status
    return status === 'deleted' ? undefined : status
  }

  #notify(change: JobChange): void {
    for (const listener of this.#listeners) listener(change)
  }
}
