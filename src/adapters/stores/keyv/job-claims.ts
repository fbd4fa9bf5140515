import type { JobRecord } from '../../../core/engine/job/job.js'
import { claim, type ClaimRequest } from '../../../core/engine/job/transitions.js'
import type { Wanted } from '../shared/job-index.js'
import type { JobsCall } from './known-jobs.js'

type ClaimWish = Omit<Wanted, 'begun'>

/** Claims of one process, of which several may run at a time. */
export function claims(clock: () => number) {
  /** Jobs that an unnamed claim is trying to get. */
  const claiming = new Map<string, Promise<unknown>>()
  /** Queued jobs whose claims are being written: the index knows them as running only afterwards. */
  const begun = new Map<string, JobRecord>()

  /** Claims this job, if it may begin. */
  async function one(
    { known, deadline }: JobsCall,
    id: string,
    request: ClaimRequest,
    given: ClaimWish,
  ): Promise<JobRecord | undefined> {
    const wanted = { ...given, begun }
    let isBegun = false
    try {
      return await known.update(id, deadline, (job) => {
        const next = known.index.mayBegin(job, wanted) ? claim(job, request, clock()) : undefined
        isBegun = next !== undefined && job.status === 'QUEUED'
        if (isBegun) begun.set(id, job)
        return next
      })
    } finally {
      if (isBegun) begun.delete(id)
    }
  }

  /** Simultaneous claims try different jobs; one waits for the others only when no other job is left. */
  async function any(call: JobsCall, request: ClaimRequest, given: ClaimWish): Promise<JobRecord | undefined> {
    const wanted = { ...given, begun }
    const { known, deadline } = call
    const tried = new Set<string>()
    for (;;) {
      const next = known.index.takeNext(clock(), wanted, [...tried, ...claiming.keys()])
      if (!next) {
        if (claiming.size === 0) return undefined
        // A claim that fails leaves its job to this one.
        await Promise.race(claiming.values())
        deadline.check()
        continue
      }
      tried.add(next.id)
      const attempt = one(call, next.id, request, given).finally(() => claiming.delete(next.id))
      claiming.set(
        next.id,
        attempt.catch(() => {}),
      )
      const granted = await attempt.catch(known.unlessDamaged(next.id))
      if (granted) return granted
    }
  }

  return { one, any }
}
