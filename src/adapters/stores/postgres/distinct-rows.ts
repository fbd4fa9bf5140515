/**
 * A query for the distinct combinations of values in the columns. It skips from one combination to the next in an index
 * that begins with the columns (after those that the source fixes), and reads no rows in between.
 *
 * @param smallest another column, whose smallest value is wanted for each combination
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
