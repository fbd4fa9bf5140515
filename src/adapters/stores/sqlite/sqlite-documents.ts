import type { DocumentStore, DocumentWrite, StoredDocument } from '../../../core/engine/ports/document-store.js'
import type { SqliteDatabase } from './sqlite-database.js'

interface Row {
  key: ArrayBuffer
  version: number
  value: string
}

/** The driver ends a text at its first U+0000, but not bytes. */
const columns = 'CAST(key AS BLOB) AS key, version, value'

export function sqliteDocuments(database: SqliteDatabase, clock: () => number): DocumentStore {
  return {
    async get(kind, key) {
      const row = database.get<Row>(`SELECT ${columns} FROM documents WHERE kind = ? AND key = ? AND expires_at > ?`, [
        kind,
        key,
        clock(),
      ])
      return row && stored(row)
    },
    async put(document, { version } = {}) {
      const written = database.transaction(() => writeDocument(database, document, version, clock()))
      if (written !== undefined) await database.durable()
      return written
    },
    async delete(kind, key) {
      database.write('DELETE FROM documents WHERE kind = ? AND key = ?', [kind, key])
    },
    async list(kind, { limit, after = '' }) {
      return database
        .all<Row>(
          `SELECT ${columns} FROM documents WHERE kind = ? AND key > ? AND expires_at > ?
          ORDER BY documents.key LIMIT ?`,
          [kind, after, clock(), Math.max(0, limit)],
        )
        .map(stored)
    },
    async due(kind, limit) {
      const now = clock()
      return database
        .all<Row>(
          `SELECT ${columns} FROM documents WHERE kind = ? AND due_at <= ? AND expires_at > ? ORDER BY due_at LIMIT ?`,
          [kind, now, now, Math.max(0, limit)],
        )
        .map(stored)
    },
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
