import type Database from 'libsql'
import { searchText } from '../../../core/engine/job/search-text.js'
import type { Logger } from '../../../core/engine/ports/logger.js'

const rowsAtOnce = 1000
const sayEachMs = 1000

export const countUnfilledSql = 'SELECT count(*) AS of FROM jobs WHERE search IS NULL'

/** Fills in the searched text of rows of an earlier version. Continues where a killed process stopped. */
export function fillSearch(database: Database.Database, logger: Logger): void {
  // Uses the index of these rows: nearly always there are none.
  const { of } = database.prepare(countUnfilledSql).get() as { of: number }
  // In the order of the table, in which neighbours share pages: a third of the time that the order of ids takes.
  const find = database.prepare(
    `SELECT rowid AS row, batch_name AS batchName, iif(json_valid(record), json_extract(record, '$.name'), NULL) AS name
    FROM jobs WHERE rowid > ? AND search IS NULL ORDER BY rowid LIMIT ${rowsAtOnce}`,
  )
  const fill = database.prepare('UPDATE jobs SET search = ? WHERE rowid = ?')
  let [done, last, saidAt] = [0, 0, performance.now()]
  while (done < of) {
    const rows = find.all([last]) as { row: number; name: string | null; batchName: string | null }[]
    if (rows.length === 0) return
    database.exec('BEGIN IMMEDIATE')
    for (const row of rows) fill.run([searchText(row), row.row])
    database.exec('COMMIT')
    done += rows.length
    last = rows.at(-1)?.row ?? last
    if (performance.now() - saidAt > sayEachMs) {
      logger.info({ done, of }, 'Jobs of an earlier version are being indexed for searches.')
      saidAt = performance.now()
    }
  }
}
