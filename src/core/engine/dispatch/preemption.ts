import type { Claimable, JobStore } from '../ports/job-store.js'
import type { Logger } from '../ports/logger.js'
import type { ApplicationShares } from './application-shares.js'
import type { RunSlot } from './attempt/run-slot.js'

/** Often enough that a 10-second job starts within 15 s among hour-long ones; rare compared with their heartbeats. */
const lookEveryMs = 2000
/** Cap for counting an application's running jobs: larger numbers make no difference. */
const mostCounted = 1000

/** An attempt that has a run slot. */
export interface SlotHolder {
  readonly app: string
  readonly slot: Pick<RunSlot, 'heldMs' | 'mayGiveWay' | 'mayGiveWayAtOnce'>
}

interface PreemptionParts<Holder extends SlotHolder> {
  jobs: Pick<JobStore, 'count'>
  logger: Logger
  preemptAfterMs: number | null
  shares: Pick<ApplicationShares, 'reserved' | 'reservedFor'>
  /** The attempts of this process; none while a slot is free or changes hands. */
  holders(): readonly Holder[]
  /** Claims a job of another application, which takes over the holder's slot. False if there is no such job. */
  replace(holder: Holder, claimable: Pick<Claimable, 'belowRunning' | 'onlyApps'>): Promise<boolean>
}

/**
 * Preempts long jobs that have kept their work, to give their run slots to waiting applications. The store decides
 * which application is next; this code only claims, even though all slots are taken. The application with the most
 * running jobs gives way, and only to one with none, or at least two fewer, so that equals never take each other's
 * slots. An application gets its reserved slots at once and loses none of them.
 */
export function preemption<Holder extends SlotHolder>(parts: PreemptionParts<Holder>) {
  const { jobs, logger, preemptAfterMs, shares, replace } = parts
  let timer: NodeJS.Timeout | undefined
  let looking: Promise<void> | undefined

  /** Finds the attempt that has held its slot longest, of the application with the most running jobs. */
  const largestOf = async (mayLose: (holder: Holder) => boolean) => {
    const holders = parts.holders().filter((holder) => mayLose(holder))
    let largest: { holder: Holder; running: number } | undefined
    for (const app of new Set(holders.map((holder) => holder.app))) {
      const running = await jobs.count({ app, statuses: ['STARTED'] }, { max: mostCounted })
      if (running <= shares.reservedFor(app)) continue
      const [holder] = holders.filter((one) => one.app === app).sort((a, b) => b.slot.heldMs - a.slot.heldMs)
      if (holder && (!largest || running > largest.running)) largest = { holder, running }
    }
    return largest
  }

  const look = async (): Promise<void> => {
    try {
      for (const { app, jobs: belowRunning } of shares.reserved) {
        const found = await largestOf((holder) => holder.app !== app && holder.slot.mayGiveWayAtOnce)
        if (found && (await replace(found.holder, { onlyApps: [app], belowRunning }))) return
      }
      const found = await largestOf(({ slot }) => slot.mayGiveWay)
      if (found) await replace(found.holder, { belowRunning: Math.max(1, found.running - 1) })
    } catch (error) {
      const message = 'The job store could not be queried for a job that may take a slot; the next check tries again.'
      logger.warn({ err: error }, message)
    }
  }

  return {
    start(): void {
      if (preemptAfterMs === null || timer) return
      const everyMs = Math.max(10, Math.min(lookEveryMs, preemptAfterMs / 5))
      const lookUnlessLooking = () => void (looking ??= look().finally(() => (looking = undefined)))
      timer = setInterval(lookUnlessLooking, everyMs).unref()
    },

    async stop(): Promise<void> {
      clearInterval(timer)
      await looking
    },
  }
}
