import { addUsage, dayMs, dayOf, type Usage } from '../job/quota.js'
import type { JobStore } from '../ports/job-store.js'
import type { StoreClock } from '../store-clock.js'

const kind = 'audio-charges'

interface ChargePorts {
  jobs: Pick<JobStore, 'documents' | 'usage'>
  clock: Pick<StoreClock, 'time'>
}

/** Today's seconds of audio that belong to no job, such as those of live streams. */
export async function chargedSeconds(app: string, ports: ChargePorts): Promise<number> {
  return secondsIn(await ports.jobs.documents.get(kind, await keyOf(app, ports)))
}

/** Today's usage of the application's jobs, plus its charged seconds. */
export async function usageOf(app: string, ports: ChargePorts): Promise<Usage> {
  const [used, audioSeconds] = await Promise.all([ports.jobs.usage(app), chargedSeconds(app, ports)])
  return addUsage(used, { audioSeconds })
}

/** Adds to the charged seconds, for all processes that share the store. */
export async function addCharge(app: string, seconds: number, ports: ChargePorts): Promise<void> {
  const { documents } = ports.jobs
  const key = await keyOf(app, ports)
  // Other processes may add at the same time: in each round, one of them succeeds.
  for (;;) {
    const found = await documents.get(kind, key)
    const value = { seconds: secondsIn(found) + seconds }
    const written = await documents.put({ kind, key, value, ttlMs: 2 * dayMs }, { version: found?.version ?? 0 })
    if (written !== undefined) return
  }
}

async function keyOf(app: string, { clock }: ChargePorts): Promise<string> {
  return `${dayOf(await clock.time())} ${app}`
}

function secondsIn(document: { value: unknown } | undefined): number {
  return document ? (document.value as { seconds: number }).seconds : 0
}
