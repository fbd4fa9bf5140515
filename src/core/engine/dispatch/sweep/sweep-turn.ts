import { z } from 'zod'
import type { JobStore } from '../../ports/job-store.js'
import type { StoreClock } from '../../store-clock.js'
import type { WorkerRegistry } from '../../workers/worker-registry.js'

const kind = 'sweep'
const key = 'turn'
/** A turn is due after this share of the interval, because a node's timer may be early. */
const earliest = 0.9
/** After this many intervals without a sweep, the document expires. */
const rememberedRounds = 10

const turnSchema = z.object({
  /** Time of the last sweep, by the store's clock. */
  at: z.number(),
  /** Number of live workers at that time. */
  workers: z.number(),
})

interface TurnParts {
  jobs: Pick<JobStore, 'traits' | 'documents'>
  clock: Pick<StoreClock, 'time'>
  workers: Pick<WorkerRegistry, 'known'>
  intervalMs: number
}

/**
 * Decides which node sweeps: the work is the same for all nodes, so in each interval one of them does it, the one that
 * first updates a document. If that node fails, another takes over.
 *
 * @returns whether it is this node's turn, and the number of live workers
 * @throws the store's error
 */
export async function sweepTurn({
  jobs,
  clock,
  workers,
  intervalMs,
}: TurnParts): Promise<{ isOurs: boolean; workers: number }> {
  if (jobs.traits.scope === 'process') return { isOurs: true, workers: 1 }
  const now = await clock.time()
  const found = await jobs.documents.get(kind, key)
  const last = turnSchema.safeParse(found?.value).data
  // It is in the future if the clock was set back.
  if (last && Math.abs(now - last.at) < earliest * intervalMs) return { isOurs: false, workers: last.workers }
  const value = { at: now, workers: (await workers.known()).length }
  const version = await jobs.documents.put(
    { kind, key, value, ttlMs: rememberedRounds * intervalMs },
    { version: found?.version ?? 0 },
  )
  return { isOurs: version !== undefined, workers: value.workers }
}
