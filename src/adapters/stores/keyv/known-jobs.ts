import { z } from 'zod'
import type { StemworkError } from '../../../core/engine/errors.js'
import type { JobRecord } from '../../../core/engine/job/job.js'
import { indexedPart, type IndexedJob } from '../shared/indexed-job.js'
import { JobIndex } from '../shared/job-index.js'
import type { AnswerDeadline } from './answer-deadline.js'
import type { Backend } from './backend.js'
import { type JobRecords, jobRecords, tombstoneMs } from './job-records.js'
import { KeyLocks } from './key-locks.js'
import { type PagedList, pagedList } from './paged-list.js'

/** The part of a job that is kept in memory: a few hundred bytes, without its params and details. */
export type KnownJob = IndexedJob & { token: number; version: number }

/** The known jobs, for one call of the store, and the deadline of its caller. */
export interface JobsCall {
  known: KnownJobs
  deadline: AnswerDeadline
}

const recordsPerRead = 200

/**
 * This process's knowledge of the stored jobs: an index over all of them, made once from the backend and updated with
 * every write. It can be trusted because no other process writes.
 */
export class KnownJobs {
  readonly index = new JobIndex<KnownJob>()
  readonly locks = new KeyLocks()
  /** The ids of all jobs. An id may lack its record (a crash between the two writes), but no record lacks its id. */
  readonly pages: PagedList<string>
  readonly #records: JobRecords
  readonly #clock: () => number
  /** Jobs with a failed write that may have happened after all. */
  readonly #uncertain = new Set<string>()
  /** Jobs whose entries hold no record: unknown to the index, so that they block nothing. */
  readonly #damaged = new Map<string, StemworkError>()
  /** Ordered by time. */
  #tombstones: { id: string; until: number }[] = []

  private constructor(pages: PagedList<string>, records: JobRecords, clock: () => number) {
    this.pages = pages
    this.#records = records
    this.#clock = clock
  }

  static async load(backend: Backend, clock: () => number): Promise<KnownJobs> {
    const pages = await pagedList(backend, {
      directoryKey: 'stemwork/jobs',
      schema: z.string(),
      keyOf: (id) => id,
      // About 20 kB: the writes of a new job besides its record do not grow with the number of jobs.
      perPage: 500,
    })
    const records = jobRecords(backend)
    const known = new KnownJobs(pages, records, clock)
    const ids = pages.items()
    const found: KnownJob[] = []
    for (let start = 0; start < ids.length; start += recordsPerRead) {
      const batch = ids.slice(start, start + recordsPerRead)
      const entries = await records.readMany(batch)
      for (const [index, id] of batch.entries()) {
        const entry = entries[index]
        if (entry && 'job' in entry) found.push(summary(entry.job, entry.version))
        else if (entry && 'damaged' in entry) known.#damaged.set(id, entry.damaged)
        else known.#tombstones.push({ id, until: clock() + tombstoneMs })
      }
    }
    // In the order of the lists, so that each job is appended.
    found.sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
    for (const job of found) known.index.set(job)
    return known
  }

  get damagedIds(): string[] {
    return [...this.#damaged.keys()]
  }

  isDamaged(id: string): boolean {
    return this.#damaged.has(id)
  }

  /** @throws StemworkError `STORE_UNAVAILABLE` for a job whose stored entry is no record. */
  requireSound(id: string): void {
    const error = this.#damaged.get(id)
    if (error) throw error
  }

  /** Finds out whether failed writes have happened: after an outage, nothing is answered before that is known. */
  async settle(): Promise<void> {
    if (this.#uncertain.size === 0) return
    await Promise.all(
      [...this.#uncertain].map((id) =>
        this.locks.hold(id, async () => {
          // A damaged job is noted as such, which is enough.
          if (this.#uncertain.has(id)) await this.current(id).catch(this.unlessDamaged(id))
        }),
      ),
    )
  }

  /**
   * The stored job and its version, read under the job's lock; the index agrees with it afterwards.
   *
   * @throws StemworkError `STORE_UNAVAILABLE` if the entry is no record; then the job is damaged.
   */
  async current(id: string): Promise<{ job: JobRecord; version: number } | undefined> {
    const known = this.index.get(id)
    const stored = await this.#records.read(id)
    if (!stored && known) this.pages.markStale()
    this.#uncertain.delete(id)
    if (stored && 'damaged' in stored) {
      this.index.remove(id)
      this.#damaged.set(id, stored.damaged)
      throw stored.damaged
    }
    if (!stored || 'purged' in stored) {
      this.index.remove(id)
      return undefined
    }
    const entry = known && stored.version < known.version ? restored(stored.job, known) : stored
    if (stored.version !== known?.version) this.index.set(summary(entry.job, entry.version))
    return entry
  }

  /** Writes the job, whose lock the caller holds. */
  async write(job: JobRecord, version: number): Promise<JobRecord> {
    const written = await this.#risk(job.id, () => this.#records.write(job, version))
    this.index.set(summary(written, version))
    return written
  }

  /** Purges the job, whose lock the caller holds. */
  async leaveTombstone(job: KnownJob): Promise<void> {
    await this.#risk(job.id, () => this.#records.leaveTombstone(job.id, job.version + 1))
    this.index.remove(job.id)
    this.#tombstones.push({ id: job.id, until: this.#clock() + tombstoneMs })
  }

  /** Runs `work` under the job's lock, unless its caller has stopped waiting by then. */
  exclusively<Result>(id: string, deadline: AnswerDeadline, work: () => Promise<Result>): Promise<Result> {
    return this.locks.hold(id, () => {
      deadline.check()
      return work()
    })
  }

  /** Writes the result of `change` on the stored job; `undefined` if there is no job, or nothing to write. */
  async update(
    id: string,
    deadline: AnswerDeadline,
    change: (job: JobRecord) => JobRecord | undefined,
  ): Promise<JobRecord | undefined> {
    return this.exclusively(id, deadline, async () => {
      this.requireSound(id)
      const current = this.index.get(id) && (await this.current(id))
      const next = current && change(current.job)
      deadline.check()
      return next && this.write(next, current.version + 1)
    })
  }

  async read(id: string): Promise<JobRecord | undefined> {
    const job = this.index.get(id)
    const [stored] = job ? await this.readLive([job]) : []
    if (!stored) this.requireSound(id)
    return stored
  }

  /** Reads the jobs that exist and are not deleted. */
  async readLive(jobs: readonly { id: string }[]): Promise<JobRecord[]> {
    const stored = await this.readStored(jobs)
    return stored.filter((job) => !job.deleted && this.index.get(job.id)?.deleted === false)
  }

  async readStored(jobs: readonly { id: string }[]): Promise<JobRecord[]> {
    const entries = await this.#records.readMany(jobs.map(({ id }) => id))
    const found: JobRecord[] = []
    for (const [index, { id }] of jobs.entries()) {
      const entry = entries[index]
      if (entry && 'job' in entry) found.push(entry.job)
      // The backend lost or spoilt the record: it is not listed, and the sweep does not fail on it forever.
      else await this.locks.hold(id, () => this.current(id)).catch(this.unlessDamaged(id))
    }
    return found
  }

  /** Handles errors of one damaged job, which must not stop the work on others. */
  unlessDamaged(id: string): (error: unknown) => undefined {
    return (error) => {
      if (!this.isDamaged(id)) throw error
    }
  }

  /** Removes up to `limit` expired tombstones, and ids that never got a record. */
  async clear(limit: number): Promise<void> {
    const now = this.#clock()
    const due = new Set(this.#tombstones.slice(0, limit).filter(({ until }) => until <= now))
    if (due.size === 0) return
    const clearOne = async (id: string) => {
      if (this.index.get(id)) return
      await this.#records.remove(id)
      await this.pages.remove([id])
    }
    await Promise.all([...due].map(({ id }) => this.locks.hold(id, () => clearOne(id))))
    this.#tombstones = this.#tombstones.filter((tombstone) => !due.has(tombstone))
  }

  async #risk<Result>(id: string, write: () => Promise<Result>): Promise<Result> {
    try {
      return await write()
    } catch (error) {
      this.#uncertain.add(id)
      throw error
    }
  }
}

/**
 * Corrects the older state that a backend shows if it lost its last writes. That state is the only one there is, but a
 * granted fencing token must not be granted again, and a promised deletion must stay.
 */
function restored(job: JobRecord, known: KnownJob): { job: JobRecord; version: number } {
  const deleted = job.deleted || known.deleted
  return {
    version: known.version,
    job: { ...job, token: Math.max(job.token, known.token), deleted, lease: deleted ? null : job.lease },
  }
}

function summary(job: JobRecord, version: number): KnownJob {
  return {
    ...indexedPart(job),
    outputs: job.expired ? {} : job.outputs,
    deliveries: job.deliveries.filter(({ outcome }) => outcome === 'pending'),
    token: job.token,
    version,
  }
}
