import type Database from 'libsql'
import { searchText } from '../../../core/engine/job/search-text.js'
import type { Logger } from '../../../core/engine/ports/logger.js'

const rowsAtOnce = 1000
const sayEachMs = 1000

/** Gives rows of an earlier version their text for searches. Continues where a killed process stopped. */
export function fillSearch(database: Database.Database, logger: Logger): void {
  // In the order of the table, in which neighbours share pages: a third of the time that the order of ids takes.
  const unfilled = database.prepare('SELECT rowid AS row FROM jobs WHERE search IS NULL ORDER BY rowid')
  const find = database.prepare(
    `SELECT batch_name AS batchName, iif(json_valid(record), json_extract(record, '$.name'), NULL) AS name
    FROM jobs WHERE rowid = ?`,
  )
  const fill = database.prepare('UPDATE jobs SET search = ? WHERE rowid = ?')
  const rows = unfilled.all() as { row: number }[]
  let saidAt = performance.now()
  for (let done = 0; done < rows.length; done += rowsAtOnce) {
    if (performance.now() - saidAt > sayEachMs) {
      logger.info({ done, of: rows.length }, 'Jobs of an earlier version are being prepared for searches.')
      saidAt = performance.now()
    }
    database.exec('BEGIN IMMEDIATE')
    for (const { row } of rows.slice(done, done + rowsAtOnce))
      fill.run([searchText(find.get([row]) as { name: string | null; batchName: string | null }), row])
    database.exec('COMMIT')
  }
}
