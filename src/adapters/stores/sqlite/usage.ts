import { addUsage, dayOf, noUsage, type Quota, quotaExceeded, type Usage } from '../../../core/engine/job/quota.js'
import type { SqliteDatabase } from './sqlite-database.js'

/** What applications have used, by day; to be called in the transaction that uses it. */
export class UsageTable {
  readonly #database: SqliteDatabase

  constructor(database: SqliteDatabase) {
    this.#database = database
  }

  read(app: string, now: number): Usage {
    const row = this.#database.get<Usage>(
      'SELECT jobs, audio_seconds AS audioSeconds, bytes FROM usage WHERE app = ? AND day = ?',
      app,
      dayOf(now),
    )
    // The driver adds its own fields to a row.
    return row ? { jobs: row.jobs, audioSeconds: row.audioSeconds, bytes: row.bytes } : noUsage
  }

  add(app: string, now: number, more: Partial<Usage>): void {
    const { jobs, audioSeconds, bytes } = addUsage(noUsage, more)
    this.#database.write('DELETE FROM usage WHERE day < ?', dayOf(now) - 1)
    this.#database.write(
      `INSERT INTO usage (app, day, jobs, audio_seconds, bytes) VALUES (?, ?, ?, ?, ?) ON CONFLICT (app, day) DO UPDATE
      SET jobs = jobs + excluded.jobs, audio_seconds = audio_seconds + excluded.audio_seconds,
        bytes = bytes + excluded.bytes`,
      app,
      dayOf(now),
      jobs,
      audioSeconds,
      bytes,
    )
  }

  /** Counts the jobs. @throws StemworkError `QUOTA_EXCEEDED`. */
  take(app: string, now: number, quota: Quota | undefined, jobs = 1): void {
    if (!quota) return
    const refused = quotaExceeded(quota, this.read(app, now), jobs, now)
    if (refused) throw refused
    this.add(app, now, { jobs })
  }
}
