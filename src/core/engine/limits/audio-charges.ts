import { addUsage, dayMs, dayOf, type Usage } from '../job/quota.js'
import type { DocumentStore } from '../ports/document-store.js'
import type { JobStore } from '../ports/job-store.js'

const kind = 'audio-charges'

/** Seconds of audio of today that no job had, such as those of live streams. */
export async function chargedSeconds(app: string, documents: DocumentStore): Promise<number> {
  return secondsIn(await documents.get(kind, keyOf(app)))
}

/** What the jobs of today have used, and what was charged besides. */
export async function usageOf(app: string, jobs: JobStore): Promise<Usage> {
  const [used, audioSeconds] = await Promise.all([jobs.usage(app), chargedSeconds(app, jobs.documents)])
  return addUsage(used, { audioSeconds })
}

/** Adds to them, for the store's other processes, too. */
export async function addCharge(app: string, seconds: number, documents: DocumentStore): Promise<void> {
  const key = keyOf(app)
  // Other processes may add at the same time: one of them succeeds each time.
  for (;;) {
    const found = await documents.get(kind, key)
    const value = { seconds: secondsIn(found) + seconds }
    const written = await documents.put({ kind, key, value, ttlMs: 2 * dayMs }, { version: found?.version ?? 0 })
    if (written !== undefined) return
  }
}

function keyOf(app: string): string {
  return `${dayOf(Date.now())} ${app}`
}

function secondsIn(document: { value: unknown } | undefined): number {
  return document ? (document.value as { seconds: number }).seconds : 0
}
