import type Database from 'libsql'
import { searchText } from '../../../core/engine/job/search-text.js'

const rowsAtOnce = 1000

/** Gives rows of an earlier version their text for searches. Continues where a killed process stopped. */
export function fillSearch(database: Database.Database): void {
  const find = database.prepare(
    `SELECT id, batch_name AS batchName, iif(json_valid(record), json_extract(record, '$.name'), NULL) AS name
    FROM jobs WHERE search IS NULL LIMIT ${rowsAtOnce}`,
  )
  const fill = database.prepare('UPDATE jobs SET search = ? WHERE id = ?')
  for (;;) {
    const rows = find.all() as { id: string; name: string | null; batchName: string | null }[]
    if (rows.length === 0) return
    database.exec('BEGIN IMMEDIATE')
    for (const row of rows) fill.run([searchText(row), row.id])
    database.exec('COMMIT')
  }
}
