import { addUsage, dayMs, dayOf, type Usage } from '../job/quota.js'
import type { DocumentStore } from '../ports/document-store.js'
import type { JobStore } from '../ports/job-store.js'

const kind = 'audio-charges'

/** Today's seconds of audio that belong to no job, such as those of live streams. */
export async function chargedSeconds(app: string, documents: DocumentStore): Promise<number> {
  return secondsIn(await documents.get(kind, keyOf(app)))
}

/** What today's jobs used, plus these seconds. */
export async function usageOf(app: string, jobs: JobStore): Promise<Usage> {
  const [used, audioSeconds] = await Promise.all([jobs.usage(app), chargedSeconds(app, jobs.documents)])
  return addUsage(used, { audioSeconds })
}

/** Adds to these seconds; every process of the store sees it. */
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
