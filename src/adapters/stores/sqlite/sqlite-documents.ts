import type { DocumentStore, DocumentWrite, StoredDocument } from '../../../core/engine/ports/document-store.js'
import type { SqliteDatabase, Value } from './sqlite-database.js'

interface Row {
  key: ArrayBuffer
  version: number
  value: string
}

/** The driver cuts off a text at its first U+0000, but not bytes. */
const columns = 'CAST(key AS BLOB) AS key, version, value'

export function sqliteDocuments(database: SqliteDatabase, clock: () => number): DocumentStore {
  const find = (kind: string, rest: string, values: Value[]): StoredDocument[] =>
    database
      .all<Row>(`SELECT ${columns} FROM documents WHERE kind = ? AND expires_at > ? AND ${rest}`, [
        kind,
        clock(),
        ...values,
      ])
      .map(stored)

  return {
    get: async (kind, key) => find(kind, 'key = ?', [key])[0],

    async put(document, { version } = {}) {
      const written = database.transaction(() => writeDocument(database, document, version, clock()))
      if (written !== undefined) await database.durable()
      return written
    },
    async delete(kind, key) {
      database.write('DELETE FROM documents WHERE kind = ? AND key = ?', [kind, key])
    },
    list: async (kind, { limit, after = '' }) =>
      find(kind, 'key > ? ORDER BY documents.key LIMIT ?', [after, Math.max(0, limit)]),

    due: async (kind, limit) => find(kind, 'due_at <= ? ORDER BY due_at LIMIT ?', [clock(), Math.max(0, limit)]),

    async removeExpired(limit) {
      return database.all(
        'DELETE FROM documents WHERE (kind, key) IN (SELECT kind, key FROM documents WHERE expires_at <= ? LIMIT ' +
          '?) RETURNING key',
        [clock(), Math.max(0, limit)],
      ).length
    },
  }
}

/** See `DocumentStore.put`; in a transaction. */
export function writeDocument(
  database: SqliteDatabase,
  { kind, key, value, ttlMs, dueInMs = null }: DocumentWrite,
  version: number | undefined,
  now: number,
): number | undefined {
  const present =
    database.get<Pick<Row, 'version'>>('SELECT version FROM documents WHERE kind = ? AND key = ? AND expires_at > ?', [
      kind,
      key,
      now,
    ])?.version ?? 0
  if (version !== undefined && version !== present) return undefined
  database.write(
    'INSERT OR REPLACE INTO documents (kind, key, version, value, due_at, expires_at) VALUES (?, ?, ?, ?, ?, ?)',
    [kind, key, present + 1, JSON.stringify(value), dueInMs === null ? null : now + dueInMs, now + ttlMs],
  )
  return present + 1
}

function stored({ key, version, value }: Row): StoredDocument {
  return { key: Buffer.from(key).toString(), version, value: JSON.parse(value) }
}
