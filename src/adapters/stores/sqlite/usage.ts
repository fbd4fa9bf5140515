import { addUsage, dayOf, noUsage, type Quota, quotaExceeded, type Usage } from '../../../core/engine/job/quota.js'
import type { SqliteDatabase } from './sqlite-database.js'

export type UsageTable = ReturnType<typeof usageTable>

/** Usage of applications, by day; its methods are called in the transaction of the use. */
export function usageTable(database: SqliteDatabase) {
  const read = (app: string, now: number): Usage => {
    const row = database.get<Usage>(
      'SELECT jobs, audio_seconds AS audioSeconds, bytes FROM usage WHERE app = ? AND day = ?',
      [app, dayOf(now)],
    )
    // The driver adds its own fields to a row.
    return row ? { jobs: row.jobs, audioSeconds: row.audioSeconds, bytes: row.bytes } : noUsage
  }

  const add = (app: string, now: number, more: Partial<Usage>) => {
    const { jobs, audioSeconds, bytes } = addUsage(noUsage, more)
    database.write('DELETE FROM usage WHERE day < ?', [dayOf(now) - 1])
    database.write(
      `INSERT INTO usage (app, day, jobs, audio_seconds, bytes) VALUES (?, ?, ?, ?, ?) ON CONFLICT (app, day) DO UPDATE
      SET jobs = jobs + excluded.jobs, audio_seconds = audio_seconds + excluded.audio_seconds,
        bytes = bytes + excluded.bytes`,
      [app, dayOf(now), jobs, audioSeconds, bytes],
    )
  }

  /** Counts the jobs. @throws StemworkError `QUOTA_EXCEEDED`. */
  const take = (app: string, now: number, quota: Quota | undefined, jobs = 1) => {
    if (!quota) return
    const refused = quotaExceeded(quota, read(app, now), jobs, now)
    if (refused) throw refused
    add(app, now, { jobs })
  }
  return { read, add, take }
}
