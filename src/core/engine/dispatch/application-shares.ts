import type { JobRecord } from '../job/job.js'
import type { Claimable } from '../ports/job-store.js'

/** An application's share of the run slots while jobs wait for them. */
export interface ApplicationShare {
  /** Jobs started in each of its turns. */
  weight: number
  /** While it has fewer running jobs than this, its next one starts before those of all others. */
  reserved: number
}

/** Asks the store for jobs, at most `max`. */
type Ask = (claimable: Pick<Claimable, 'onlyApps' | 'belowRunning'>, max: number) => Promise<JobRecord[]>

/**
 * The order in which a worker claims jobs when applications have unequal shares: first those whose reservation is not
 * used up; then all take turns, and one with a weight starts that many jobs in each.
 */
export class ApplicationShares {
  readonly #shares: ReadonlyMap<string, ApplicationShare>
  readonly #hasWeights: boolean
  /** The application whose turn has not ended. */
  #turn: { app: string; left: number } | undefined

  constructor(shares: Readonly<Record<string, Partial<ApplicationShare>>>) {
    this.#shares = new Map(
      Object.entries(shares).map(([app, { weight = 1, reserved = 0 }]) => [app, { weight, reserved }]),
    )
    this.#hasWeights = [...this.#shares.values()].some(({ weight }) => weight > 1)
  }

  reservedFor(app: string): number {
    return this.#shares.get(app)?.reserved ?? 0
  }

  /** Applications with a reservation. */
  get reserved(): { app: string; jobs: number }[] {
    return [...this.#shares].flatMap(([app, { reserved }]) => (reserved > 0 ? [{ app, jobs: reserved }] : []))
  }

  async claim(max: number, ask: Ask): Promise<JobRecord[]> {
    const claimed: JobRecord[] = []
    try {
      for (const { app, jobs } of this.reserved) {
        // One at a time: each claim counts towards the limit of the next.
        const next = () => ask({ onlyApps: [app], belowRunning: jobs }, 1)
        while (claimed.length < max && take(claimed, await next()));
      }
      const rest = max - claimed.length
      if (rest > 0 && !this.#hasWeights) take(claimed, await ask({}, rest))
      else while (claimed.length < max && take(claimed, await this.#nextInTurn(ask)));
    } catch (error) {
      // Jobs that were granted before the failure must run.
      if (claimed.length === 0) throw error
    }
    return claimed
  }

  async #nextInTurn(ask: Ask): Promise<JobRecord[]> {
    const turn = this.#turn
    if (turn && turn.left > 0) {
      const jobs = await ask({ onlyApps: [turn.app] }, 1)
      turn.left = jobs.length > 0 ? turn.left - 1 : 0
      if (jobs.length > 0) return jobs
    }
    const jobs = await ask({}, 1)
    const [job] = jobs
    if (job) this.#turn = { app: job.app, left: (this.#shares.get(job.app)?.weight ?? 1) - 1 }
    return jobs
  }
}

/** Returns whether there was any. */
function take(claimed: JobRecord[], jobs: readonly JobRecord[]): boolean {
  claimed.push(...jobs)
  return jobs.length > 0
}
