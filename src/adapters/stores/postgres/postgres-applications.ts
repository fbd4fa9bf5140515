import type { z } from 'zod'
import { apiKeySchema, type ApplicationStore, applicationSchema } from '../../../core/engine/ports/application-store.js'
import { storeUnavailable } from '../../../core/engine/errors.js'
import { type PostgresPool, statement } from './database.js'
import { columnText } from './job-row.js'
import { rowsById } from './rows-by-id.js'

/** Applications and their keys, next to the jobs. */
export function postgresApplications(pool: PostgresPool, schema: string): ApplicationStore {
  const run = (text: string, values: unknown[] = []) => statement(pool, text, values)
  const records = (table: string) => rowsById(pool, { table: `${schema}.${table}`, columns: 'record', maxRows: 100 })
  const findApplication = records('applications')
  const findKey = records('api_keys')

  return {
    async putApplication(application) {
      await run(
        `INSERT INTO ${schema}.applications (id, created_at, record) VALUES ($1, $2, $3)
        ON CONFLICT (id) DO UPDATE SET created_at = excluded.created_at, record = excluded.record`,
        [columnText(application.id), Math.round(application.createdAt), JSON.stringify(application)],
      )
    },
    async getApplication(id) {
      const row = await findApplication(id)
      return row && parse(applicationSchema, row[0])
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
      const row = await findKey(id)
      return row && parse(apiKeySchema, row[0])
    },
    async listKeys(app) {
      const rows = await run(`SELECT record FROM ${schema}.api_keys WHERE app = $1 ORDER BY created_at DESC, id DESC`, [
        columnText(app),
      ])
      return rows.map(([record]) => parse(apiKeySchema, record))
    },
    async deleteKey({ id }) {
      await run(`DELETE FROM ${schema}.api_keys WHERE id = $1`, [columnText(id)])
    },
  }
}

function parse<Schema extends z.ZodType>(schema: Schema, record: string | null | undefined): z.output<Schema> {
  const result = schema.safeParse(JSON.parse(record ?? 'null'))
  if (result.success) return result.data
  throw storeUnavailable(
    'A row of the applications or keys table is not valid. Check what else writes to these tables.',
    { cause: result.error },
  )
}
