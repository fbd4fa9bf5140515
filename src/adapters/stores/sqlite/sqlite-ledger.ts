import { inOrder, type LedgerEntry, type LedgerGroup, type LedgerTotal } from '../../../core/engine/job/ledger.js'
import { dayMs } from '../../../core/engine/job/quota.js'
import type { Ledger } from '../../../core/engine/ports/job-store.js'
import type { SqliteDatabase } from './sqlite-database.js'

/** A trigger of the jobs' table writes the entries, in the transaction that ends the job. */
export function sqliteLedger(database: SqliteDatabase): Ledger {
  return {
    async entries({ fromDay, toDay, app, after, limit }) {
      const start = { endedAt: fromDay * dayMs, id: '' }
      const from = after && after.endedAt >= start.endedAt ? after : start
      const rows = database.all<{ entry: string }>(
        `SELECT entry FROM ledger WHERE (ended_at, id) > (?1, ?2) AND ended_at < ?3 AND (?4 IS NULL OR app = ?4)
          ORDER BY ended_at, id LIMIT ?5`,
        [from.endedAt, from.id, (toDay + 1) * dayMs, app ?? null, Math.max(0, limit)],
      )
      return rows.map(({ entry }) => JSON.parse(entry) as LedgerEntry)
    },

    async totals({ fromDay, toDay, app }, groupBy) {
      const columns = groupBy.map((name: LedgerGroup) => `${name}, `).join('')
      const group = groupBy.length > 0 ? `GROUP BY ${groupBy.join(', ')}` : 'HAVING count(*) > 0'
      const rows = database.all<LedgerTotal>(
        `SELECT ${columns} sum(jobs) AS jobs, sum(succeeded) AS succeeded, sum(audio_seconds) AS audioSeconds,
          sum(bytes) AS bytes, sum(processor_seconds) AS processorSeconds
        FROM ledger_days WHERE day BETWEEN ?1 AND ?2 AND (?3 IS NULL OR app = ?3) ${group}`,
        [fromDay, toDay, app ?? null],
      )
      const names = [...groupBy, 'jobs', 'succeeded', 'audioSeconds', 'bytes', 'processorSeconds'] as const
      // The driver adds its own fields to a row.
      return inOrder(rows.map((row) => Object.fromEntries(names.map((name) => [name, row[name]])) as never))
    },

    async tidy({ keepFromDay }) {
      return database.transaction(() => {
        database.write('DELETE FROM ledger_days WHERE day < ?', [keepFromDay])
        return database.all('DELETE FROM ledger WHERE ended_at < ? RETURNING id', [keepFromDay * dayMs]).length
      })
    },
  }
}
