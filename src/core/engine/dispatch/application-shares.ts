import type { JobRecord } from '../job/job.js'
import type { Claimable } from '../ports/job-store.js'

/** An application's share of the run slots while jobs wait for them. */
export interface ApplicationShare {
  /** Jobs started in each turn of the application. */
  weight: number
  /** While the application has fewer running jobs than this, its next job starts before all others'. */
  reserved: number
}

/** Claims at most `max` jobs from the store. */
type Ask = (claimable: Pick<Claimable, 'onlyApps' | 'belowRunning'>, max: number) => Promise<JobRecord[]>

export type ApplicationShares = ReturnType<typeof applicationShares>

/**
 * The order in which a worker claims jobs when applications have unequal shares: first for applications with unused
 * reserved slots; then all take turns, and an application with a weight starts that many jobs in each turn.
 */
export function applicationShares(given: Readonly<Record<string, Partial<ApplicationShare>>>) {
  const shares = new Map(
    Object.entries(given).map(([app, { weight = 1, reserved = 0 }]) => [app, { weight, reserved }]),
  )
  const hasWeights = [...shares.values()].some(({ weight }) => weight > 1)
  const reserved = [...shares].flatMap(([app, share]) => (share.reserved > 0 ? [{ app, jobs: share.reserved }] : []))
  /** The application whose turn has not ended. */
  let turn: { app: string; left: number } | undefined

  const nextInTurn = async (ask: Ask): Promise<JobRecord[]> => {
    if (turn && turn.left > 0) {
      const current = turn
      const jobs = await ask({ onlyApps: [current.app] }, 1)
      current.left = jobs.length > 0 ? current.left - 1 : 0
      if (jobs.length > 0) return jobs
    }
    const jobs = await ask({}, 1)
    const [job] = jobs
    if (job) turn = { app: job.app, left: (shares.get(job.app)?.weight ?? 1) - 1 }
    return jobs
  }

  return {
    /** Applications with a reservation. */
    reserved,
    reservedFor: (app: string): number => shares.get(app)?.reserved ?? 0,

    async claim(max: number, ask: Ask): Promise<JobRecord[]> {
      const claimed: JobRecord[] = []
      try {
        for (const { app, jobs } of reserved) {
          // One job at a time, because each claim counts towards the limit of the next.
          const next = () => ask({ onlyApps: [app], belowRunning: jobs }, 1)
          while (claimed.length < max && take(claimed, await next()));
        }
        const rest = max - claimed.length
        if (rest > 0 && !hasWeights) take(claimed, await ask({}, rest))
        else while (claimed.length < max && take(claimed, await nextInTurn(ask)));
      } catch (error) {
        // Jobs that were granted before the failure must run.
        if (claimed.length === 0) throw error
      }
      return claimed
    },
  }
}

/** Adds claimed jobs; returns whether there were any. */
function take(claimed: JobRecord[], jobs: readonly JobRecord[]): boolean {
  claimed.push(...jobs)
  return jobs.length > 0
}
