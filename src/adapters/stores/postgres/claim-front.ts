import type { JobRecord } from '../../../core/engine/job/job.js'
import { waitingSince } from '../../../core/engine/job/due-times.js'
import { columnText } from './job-row.js'

/** After this many claims of one list in quick succession, the next ones begin where the last one ended. */
const claimsInARow = 10
/** Longest wait of a job that enters before that place (handed back, or committed late). */
const searchedAgainMs = 1000

/** The job behind which a claim begins: its application, workflow and pool, and its place among these. */
export interface Front {
  list: [app: string, workflow: string, pool: string]
  rank: number
  since: number
  id: string
}

/**
 * Remembers where the last claim of this process ended, if it claims many jobs of one list. The index of waiting jobs
 * keeps a dead entry for each claimed job as long as an older transaction is open, and every claim would pass all of
 * them: dozens where many processes claim, any number during a backup. Jobs of a higher priority are always looked for;
 * others that enter before this place are found when the list is searched from its beginning, once a second and when
 * nothing else is left.
 */
export class ClaimFront {
  #front: Front | undefined
  #inARow = 0
  #claimedAt = -Infinity
  #searchedAt = -Infinity

  /** `undefined`: from the beginning. */
  get next(): Front | undefined {
    const isKnown = this.#inARow >= claimsInARow && performance.now() - this.#searchedAt < searchedAgainMs
    return isKnown ? this.#front : undefined
  }

  /**
   * @param used where the claim began
   * @param jobs the jobs that it found
   * @param options.mayBeMore whether the list may hold others before them
   */
  note(
    used: Front | undefined,
    jobs: readonly JobRecord[],
    { most, mayBeMore }: { most: number; mayBeMore: boolean },
  ): void {
    const now = performance.now()
    if (!used) this.#searchedAt = now
    const front = mayBeMore || jobs.length < most ? undefined : frontAfter(jobs)
    const isSameFront = isSameList(front, this.#front) && now - this.#claimedAt < searchedAgainMs
    this.#inARow = front ? (isSameFront ? this.#inARow + 1 : 1) : 0
    this.#front = front
    this.#claimedAt = now
  }
}

/** The values for the claim statement. */
export function frontValues(front: Front | undefined) {
  return front ? [front.list, front.rank, front.since, front.id] : [null, null, null, null]
}

function frontAfter(jobs: readonly JobRecord[]): Front | undefined {
  const fronts = jobs.map((job): Front => {
    const { id, app, workflow, pool, priority } = job
    return {
      list: [columnText(app), columnText(workflow), pool],
      rank: -priority,
      since: Math.floor(waitingSince({ ...job, status: 'QUEUED' }) ?? 0),
      id: columnText(id),
    }
  })
  const last = fronts.at(-1)
  return fronts.every((front) => isSameList(front, last)) ? last : undefined
}

function isSameList(one: Front | undefined, other: Front | undefined): boolean {
  return one !== undefined && other !== undefined && one.list.every((part, at) => part === other.list[at])
}
