import { batched } from '../shared/batched.js'
import { type PostgresPool, preparedStatement, type Row } from './database.js'
import { columnText } from './job-row.js'

/** A connection that has fallen silent must not hold up all look-ups. */
const parallel = 2

/**
 * Finds rows by their ids. However many are asked for at a time, they take two connections at most: those that are
 * asked for while others are on their way are found by one statement.
 */
export function rowsById(
  pool: PostgresPool,
  { table, columns, maxRows }: { table: string; columns: string; maxRows: number },
): (id: string) => Promise<Row | undefined> {
  const sql = `SELECT id, ${columns} FROM ${table} WHERE id = ANY($1::text[])`
  const find = batched(
    async (ids: string[]) => {
      const rows = await preparedStatement(pool, sql, [[...new Set(ids)]])
      const found = new Map(rows.map(([id, ...row]) => [id, row]))
      return ids.map((id) => found.get(id))
    },
    { maxItems: maxRows, parallel },
  )
  return (id) => find(columnText(id))
}
