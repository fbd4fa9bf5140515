import { setTimeout as delay } from 'node:timers/promises'
import type { JobPage } from '../../../core/engine/ports/job-store.js'
import { type Stretch, stretchEndSql } from './job-query.js'
import type { SqliteDatabase } from './sqlite-database.js'

/** A search looks at each job until it has found enough: at this many at a time, which takes up to 5 ms. */
const jobsAtOnce = 1000
/** Afterwards, others have the event loop for so many times as long. */
const restShare = 4

/**
 * Goes through the jobs of an application, or of all, from the newest on, in stretches.
 *
 * @param look returns whether it has found enough
 */
export async function inStretches(
  database: SqliteDatabase,
  { app, after }: Pick<JobPage, 'app' | 'after'>,
  look: (stretch: Stretch) => boolean,
): Promise<void> {
  for (let from = after; ;) {
    const startedAt = performance.now()
    const { text, values } = stretchEndSql(app, from, jobsAtOnce)
    const last = database.get<NonNullable<JobPage['after']>>(text, ...values)
    if (look({ after: from, last }) || !last) return
    from = last
    await delay(restShare * (performance.now() - startedAt))
  }
}
