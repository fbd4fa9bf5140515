import { apiKeySchema, type ApplicationStore, applicationSchema } from '../../../core/engine/ports/application-store.js'
import { parseRecord } from './record.js'
import type { SqliteDatabase } from './sqlite-database.js'

interface Row {
  record: string
}

export function sqliteApplications(database: SqliteDatabase): ApplicationStore {
  return {
    async putApplication(application) {
      database.write('INSERT OR REPLACE INTO applications (id, created_at, record) VALUES (?, ?, ?)', [
        application.id,
        application.createdAt,
        JSON.stringify(application),
      ])
      await database.durable()
    },
    async getApplication(id) {
      const row = database.get<Row>('SELECT record FROM applications WHERE id = ?', [id])
      return row && parseRecord(applicationSchema, row.record)
    },
    async listApplications() {
      return database
        .all<Row>('SELECT record FROM applications ORDER BY created_at DESC, id DESC')
        .map(({ record }) => parseRecord(applicationSchema, record))
    },
    async putKey(key) {
      database.write('INSERT OR REPLACE INTO api_keys (id, app, created_at, record) VALUES (?, ?, ?, ?)', [
        key.id,
        key.app,
        key.createdAt,
        JSON.stringify(key),
      ])
      await database.durable()
    },
    async getKey(id) {
      const row = database.get<Row>('SELECT record FROM api_keys WHERE id = ?', [id])
      return row && parseRecord(apiKeySchema, row.record)
    },
    async listKeys(app) {
      return database
        .all<Row>('SELECT record FROM api_keys WHERE app = ? ORDER BY created_at DESC, id DESC', [app])
        .map(({ record }) => parseRecord(apiKeySchema, record))
    },
    async deleteKey({ id }) {
      database.write('DELETE FROM api_keys WHERE id = ?', [id])
      await database.durable()
    },
  }
}
