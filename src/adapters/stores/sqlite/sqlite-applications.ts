import type { z } from 'zod'
import { apiKeySchema, type ApplicationStore, applicationSchema } from '../../../core/engine/ports/application-store.js'
import { parseRecord } from './record.js'
import type { SqliteDatabase, Value } from './sqlite-database.js'

export function sqliteApplications(database: SqliteDatabase): ApplicationStore {
  const find = <Schema extends z.ZodType>(schema: Schema, rows: string, values: Value[] = []) =>
    database
      .all<{ record: string }>(`SELECT record FROM ${rows} ORDER BY created_at DESC, id DESC`, values)
      .map(({ record }) => parseRecord(schema, record))

  const write = async (sql: string, values: Value[]): Promise<void> => {
    database.write(sql, values)
    await database.durable()
  }

  return {
    putApplication: (application) =>
      write('INSERT OR REPLACE INTO applications (id, created_at, record) VALUES (?, ?, ?)', [
        application.id,
        application.createdAt,
        JSON.stringify(application),
      ]),
    getApplication: async (id) => find(applicationSchema, 'applications WHERE id = ?', [id])[0],
    listApplications: async () => find(applicationSchema, 'applications'),
    putKey: (key) =>
      write('INSERT OR REPLACE INTO api_keys (id, app, created_at, record) VALUES (?, ?, ?, ?)', [
        key.id,
        key.app,
        key.createdAt,
        JSON.stringify(key),
      ]),
    getKey: async (id) => find(apiKeySchema, 'api_keys WHERE id = ?', [id])[0],
    listKeys: async (app) => find(apiKeySchema, 'api_keys WHERE app = ?', [app]),
    deleteKey: ({ id }) => write('DELETE FROM api_keys WHERE id = ?', [id]),
  }
}
