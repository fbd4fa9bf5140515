// state.mjs: all jobs in memory; each change is in the journal before it is visible.
import { JobIndex, jobRecordSchema, noUsage, plainCopy, dayOf, StemworkError } from 'stemwork/adapter'
import { Documents } from './documents.mjs'

/** @typedef {import('stemwork/adapter').JobRecord} JobRecord */
/** @typedef {import('stemwork/adapter').Usage} Usage */
/** @typedef {import('./journal.mjs').Changes} Changes */

export class State {
  /** @type {JobIndex<JobRecord>} */
  index = new JobIndex()
  /** @type {Set<string>} Ids of records that cannot be read. They stay in the journal, so that they can be repaired. */
  damaged = new Set()

  /** @param {import('./journal.mjs').Journal} journal @param {() => number} clock @param {number} idempotencyMs */
  constructor(journal, clock, idempotencyMs) {
    this.journal = journal
    this.clock = clock
    this.idempotencyMs = idempotencyMs
    this.documents = new Documents(journal, clock)
    const jobs = []
    for (const [key, value] of journal.values) {
      if (!key.startsWith('job/')) continue
      const { success, data } = jobRecordSchema.safeParse(value)
      if (success) jobs.push(data)
      else this.damaged.add(key.slice('job/'.length))
    }
    jobs.sort((a, b) => a.createdAt - b.createdAt)
    for (const job of jobs) this.index.set(job)
  }

  /**
   * Stores the jobs with the other changes, in one line, and returns copies that the caller may change.
   *
   * @param {JobRecord[]} jobs @param {Changes} others
   */
  async keep(jobs, others = []) {
    /** @type {Changes} */
    const records = jobs.map((job) => [`job/${job.id}`, job])
    await this.journal.write([...records, ...others])
    for (const job of jobs) this.index.set(job)
    return plainCopy(jobs)
  }

  /** The job, even if it is marked deleted. */
  known(/** @type {string} */ id) {
    if (this.damaged.has(id))
      throw new StemworkError(
        'STORE_UNAVAILABLE',
        `The record of the job ${id} cannot be read. Repair or remove its line.`,
      )
    return this.index.get(id)
  }

  withIdempotencyKey(/** @type {string} */ app, /** @type {string} */ key) {
    const job = this.index.withIdempotencyKey(app, key)
    return job && job.createdAt + this.idempotencyMs > this.clock() ? job : undefined
  }

  /** Usage of the application today. */
  usage(/** @type {string} */ app) {
    const { day, used } = /** @type {{ day?: number, used?: Usage }} */ (this.journal.values.get(`usage/${app}`) ?? {})
    return day === dayOf(this.clock()) && used ? used : noUsage
  }

  /** @param {string} app @param {Usage} used @returns {Changes} */
  withUsage(app, used) {
    return [[`usage/${app}`, { day: dayOf(this.clock()), used }]]
  }
}
