import { setTimeout as delay } from 'node:timers/promises'
import type { JobPage } from '../../../core/engine/ports/job-store.js'
import { type Stretch, stretchEndSql } from './job-query.js'
import type { SqliteDatabase } from './sqlite-database.js'

/** Where no index helps, each job is looked at until there are enough: this many at a time, which takes up to 5 ms. */
export const jobsAtOnce = 1000
/** Afterwards, others have the event loop for so many times as long. */
const restShare = 4

/**
 * Goes through the jobs of an application, or of all, from the newest on, in stretches.
 *
 * @param page which of them were created when they should be, and come after which
 * @param look returns whether it has found enough
 */
export async function inStretches(
  database: SqliteDatabase,
  page: Pick<JobPage, 'app' | 'after' | 'createdAfter' | 'createdBefore'>,
  look: (stretch: Stretch) => boolean,
): Promise<void> {
  const { app, createdAfter = -Infinity, createdBefore } = page
  const { after = createdBefore === undefined ? undefined : { createdAt: createdBefore, id: '' } } = page
  for (let from = after; ;) {
    const startedAt = performance.now()
    const { text, values } = stretchEndSql(app, from, jobsAtOnce)
    const last = database.get<NonNullable<JobPage['after']>>(text, values)
    if (look({ after: from, last }) || !last || last.createdAt < createdAfter) return
    from = last
    await delay(restShare * (performance.now() - startedAt))
  }
}
