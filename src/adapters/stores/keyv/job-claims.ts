import type { JobRecord } from '../../../core/engine/job/job.js'
import { claim, type ClaimRequest } from '../../../core/engine/job/transitions.js'
import type { Wanted } from '../shared/job-index.js'
import type { AnswerDeadline } from './answer-deadline.js'
import type { KnownJobs } from './known-jobs.js'

type ClaimWish = Omit<Wanted, 'begun'>

/** Claims of one process, of which several may run at a time. */
export class JobClaims {
  /** Jobs that an unnamed claim is trying to get. */
  readonly #claiming = new Map<string, Promise<unknown>>()
  /** Queued jobs whose claims are being written: the index knows them as running only afterwards. */
  readonly #begun = new Map<string, JobRecord>()
  readonly #clock: () => number

  constructor(clock: () => number) {
    this.#clock = clock
  }

  /** Claims this job, if it may begin. */
  async one(
    known: KnownJobs,
    deadline: AnswerDeadline,
    id: string,
    request: ClaimRequest,
    given: ClaimWish,
  ): Promise<JobRecord | undefined> {
    const wanted = { ...given, begun: this.#begun }
    let isBegun = false
    try {
      return await known.update(id, deadline, (job) => {
        const next = known.index.mayBegin(job, wanted) ? claim(job, request, this.#clock()) : undefined
        isBegun = next !== undefined && job.status === 'QUEUED'
        if (isBegun) this.#begun.set(id, job)
        return next
      })
    } finally {
      if (isBegun) this.#begun.delete(id)
    }
  }

  /** Simultaneous claims try different jobs; one waits for the others only when no other job is left. */
  async any(
    known: KnownJobs,
    deadline: AnswerDeadline,
    request: ClaimRequest,
    given: ClaimWish,
  ): Promise<JobRecord | undefined> {
    const wanted = { ...given, begun: this.#begun }
    const tried = new Set<string>()
    for (;;) {
      const next = known.index.takeNext(this.#clock(), wanted, [...tried, ...this.#claiming.keys()])
      if (!next) {
        if (this.#claiming.size === 0) return undefined
        // A claim that fails leaves its job to this one.
        await Promise.race(this.#claiming.values())
        deadline.check()
        continue
      }
      tried.add(next.id)
      const attempt = this.one(known, deadline, next.id, request, given).finally(() => this.#claiming.delete(next.id))
      this.#claiming.set(
        next.id,
        attempt.catch(() => {}),
      )
      const granted = await attempt.catch(known.unlessDamaged(next.id))
      if (granted) return granted
    }
  }
}
