import type { z } from 'zod'
import { apiKeySchema, type ApplicationStore, applicationSchema } from '../../../core/engine/ports/application-store.js'
import { StemworkError } from '../../../core/engine/errors.js'
import { type PostgresPool, preparedStatement, statement } from './database.js'
import { columnText } from './job-row.js'

/** Applications and their keys, next to the jobs. */
export function postgresApplications(pool: PostgresPool, schema: string): ApplicationStore {
  const run = (text: string, values: unknown[] = []) => statement(pool, text, values)
  const readFrom = async (table: string, id: string): Promise<string | null | undefined> => {
    const rows = await preparedStatement(pool, `SELECT record FROM ${schema}.${table} WHERE id = $1`, [columnText(id)])
    return rows[0]?.[0]
  }

  return {
    async putApplication(application) {
      await run(
        `INSERT INTO ${schema}.applications (id, created_at, record) VALUES ($1, $2, $3)
        ON CONFLICT (id) DO UPDATE SET created_at = excluded.created_at, record = excluded.record`,
        [columnText(application.id), Math.round(application.createdAt), JSON.stringify(application)],
      )
    },
    async getApplication(id) {
      const record = await readFrom('applications', id)
      return record === undefined ? undefined : parse(applicationSchema, record)
    },
    async listApplications() {
      const rows = await run(`SELECT record FROM ${schema}.applications ORDER BY created_at DESC, id DESC`)
      return rows.map(([record]) => parse(applicationSchema, record))
    },
    async putKey(key) {
      await run(
        `INSERT INTO ${schema}.api_keys (id, app, created_at, record) VALUES ($1, $2, $3, $4)
        ON CONFLICT (id) DO UPDATE SET app = excluded.app, created_at = excluded.created_at, record = excluded.record`,
        [columnText(key.id), columnText(key.app), Math.round(key.createdAt), JSON.stringify(key)],
      )
    },
    async getKey(id) {
      const record = await readFrom('api_keys', id)
      return record === undefined ? undefined : parse(apiKeySchema, record)
    },
    async listKeys(app) {
      const rows = await run(`SELECT record FROM ${schema}.api_keys WHERE app = $1 ORDER BY created_at DESC, id DESC`, [
        columnText(app),
      ])
      return rows.map(([record]) => parse(apiKeySchema, record))
    },
  }
}

function parse<Schema extends z.ZodType>(schema: Schema, record: string | null | undefined): z.output<Schema> {
  const result = schema.safeParse(JSON.parse(record ?? 'null'))
  if (result.success) return result.data
  throw new StemworkError(
    'STORE_UNAVAILABLE',
    'A row of the applications or keys table is not valid. Check what else writes to these tables.',
    { cause: result.error },
  )
}
