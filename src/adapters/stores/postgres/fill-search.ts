import { z } from 'zod'
import { searchText } from '../../../core/engine/job/search-text.js'
import type { JobQuery } from '../../../core/engine/ports/job-query.js'
import type { Row, Send } from './database.js'
import { columnText } from './job-row.js'

const rowsAtOnce = 500
const unreadable = { name: null, batchName: null }
const namesSchema = z.object({ name: z.string().nullable(), batchName: z.string().nullable() }).catch(unreadable)

/**
 * Called before each search: fills in the searched text of rows that nodes of an earlier version have written, and may
 * still write. It needs no lock and no version, because the searched text of a job never changes.
 */
export function fillSearch(schema: string): (send: Send, query: JobQuery) => Promise<void> {
  const unfilled = `SELECT id, record FROM ${schema}.jobs WHERE search IS NULL`
  const fill = `
    UPDATE ${schema}.jobs AS job SET search = f.search FROM json_to_recordset($1::json) AS f(id text, search text)
    WHERE job.id = f.id AND job.search IS NULL`
  return async (send, { app, search }) => {
    if (search === undefined) return
    const [find, values] = app === undefined ? [unfilled, []] : [`${unfilled} AND app = $1`, [columnText(app)]]
    for (;;) {
      const rows = await send(`${find} LIMIT ${rowsAtOnce}`, values)
      if (rows.length === 0) return
      await send(fill, [JSON.stringify(rows.map(([id, record]) => ({ id, search: textOf(record) })))])
    }
  }
}

function textOf(record: Row[number] | undefined): string {
  return searchText(namesSchema.parse(JSON.parse(record ?? 'null')))
}
