import type { DocumentStore, DocumentWrite, StoredDocument } from '../../../core/engine/ports/document-store.js'
import { type PostgresPool, preparedStatement, type Row, type Send } from './database.js'
import { columnText, nowSql } from './job-row.js'

const columns = 'key, version, value'

/** See `DocumentStore.put`. */
export function documentWrites(schema: string) {
  const table = `${schema}.documents`
  // The version of an expired document counts as 0.
  const version = `CASE WHEN d.expires_at > ${nowSql} THEN d.version ELSE 0 END`
  const sql = `
    INSERT INTO ${table} AS d (kind, key, version, value, due_at, expires_at)
    SELECT $1, $2, 1, $3, ${nowSql} + $4::bigint, ${nowSql} + $5::bigint WHERE $6::integer IS NULL OR $6 = 0
      OR EXISTS (SELECT FROM ${table} WHERE kind = $1 AND key = $2)
    ON CONFLICT (kind, key) DO UPDATE SET version = ${version} + 1, value = excluded.value,
      due_at = excluded.due_at, expires_at = excluded.expires_at
    WHERE $6::integer IS NULL OR $6 = ${version} RETURNING version`

  return async (
    send: Send,
    { kind, key, value, ttlMs, dueInMs = null }: DocumentWrite,
    expected?: number,
  ): Promise<number | undefined> => {
    const [row] = await send(sql, [
      kind,
      columnText(key),
      JSON.stringify(value),
      dueInMs === null ? null : Math.round(dueInMs),
      Math.round(ttlMs),
      expected ?? null,
    ])
    return row && Number(row[0])
  }
}

export function postgresDocuments(pool: PostgresPool, schema: string): DocumentStore {
  const run: Send = (text, values) => preparedStatement(pool, text, values)
  const table = `${schema}.documents`
  const write = documentWrites(schema)
  const find = async (rest: string, values: unknown[]): Promise<StoredDocument[]> => {
    const live = `SELECT ${columns} FROM ${table} WHERE kind = $1 AND expires_at > ${nowSql}`
    return (await run(`${live} AND ${rest}`, values)).map(stored)
  }

  return {
    get: async (kind, key) => (await find('key = $2', [kind, columnText(key)]))[0],

    put: (document, { version } = {}) => write(run, document, version),
    async delete(kind, key) {
      await run(`DELETE FROM ${table} WHERE kind = $1 AND key = $2`, [kind, columnText(key)])
    },
    list: (kind, { limit, after = '' }) =>
      find('key > $2 ORDER BY key LIMIT $3', [kind, columnText(after), Math.max(0, limit)]),

    due: (kind, limit) => find(`due_at <= ${nowSql} ORDER BY due_at LIMIT $2`, [kind, Math.max(0, limit)]),

    async removeExpired(limit) {
      const rows = await run(
        `DELETE FROM ${table} WHERE (kind, key) IN (
          SELECT kind, key FROM ${table} WHERE expires_at <= ${nowSql} LIMIT $1 FOR UPDATE SKIP LOCKED
        ) RETURNING key`,
        [Math.max(0, limit)],
      )
      return rows.length
    },
  }
}

function stored([key, version, value]: Row): StoredDocument {
  return { key: key ?? '', version: Number(version), value: JSON.parse(value ?? 'null') }
}
