/**
 * A query for the values that the columns have together, from one to the next in an index that begins with them (behind
 * what the source gives): it reads none of the rows in between.
 *
 * @param smallest another column, of which the smallest value of each is wanted, too
 */
export function distinctRows(source: string, columns: readonly string[], smallest?: string): string {
  const wanted = smallest ? [...columns, smallest] : columns
  const of = (table: string, names = wanted) => names.map((column) => `${table}.${column}`).join(', ')
  const next = (behind: string) =>
    `SELECT ${wanted.join(', ')} FROM ${source} ${behind} ORDER BY ${wanted.join(', ')} LIMIT 1`
  return `
    WITH RECURSIVE list AS (
      (${next('')})
      UNION ALL
      SELECT ${of('other')} FROM list CROSS JOIN LATERAL (
        ${next(`AND (${columns.join(', ')}) > (${of('list', columns)})`)}
      ) AS other
    ) SELECT ${of('list')} FROM list`
}
