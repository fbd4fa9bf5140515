import { batched } from '../shared/batched.js'
import { type PostgresPool, preparedStatement, type Row } from './database.js'
import { columnText } from './job-row.js'

/** A connection that no longer answers must not hold up all look-ups. */
const parallel = 2

/**
 * Finds rows by their ids. However many are requested at a time, they take two connections at most: ids requested
 * during a look-up are found by one statement.
 */
export function rowsById(
  pool: PostgresPool,
  { table, columns, maxRows }: { table: string; columns: string; maxRows: number },
): (id: string) => Promise<Row | undefined> {
  const sql = `SELECT id, ${columns} FROM ${table} WHERE id`
  const find = batched(
    async (ids: string[]) => {
      const [first, ...others] = new Set(ids)
      // Most are alone, and planned once a connection; a list, whose length matters, is planned each time.
      const rows =
        others.length === 0
          ? await preparedStatement(pool, `${sql} = $1`, [first])
          : await preparedStatement(pool, `${sql} = ANY($1::text[])`, [[first, ...others]])
      const found = new Map(rows.map(([id, ...row]) => [id, row]))
      return ids.map((id) => found.get(id))
    },
    { maxItems: maxRows, parallel },
  )
  return (id) => find(columnText(id))
}
