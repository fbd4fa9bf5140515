import type { z } from 'zod'
import { apiKeySchema, type ApplicationStore, applicationSchema } from '../../../core/engine/ports/application-store.js'
import { storeUnavailable } from '../../../core/engine/errors.js'
import { type PostgresPool, type Row, statement } from './database.js'
import { columnText } from './job-row.js'
import { rowsById } from './rows-by-id.js'

/** Applications and their keys, next to the jobs. */
export function postgresApplications(pool: PostgresPool, schema: string): ApplicationStore {
  const applications = records(pool, `${schema}.applications`, applicationSchema)
  const keys = records(pool, `${schema}.api_keys`, apiKeySchema)
  const run = async (text: string, values: unknown[]): Promise<void> => void (await statement(pool, text, values))

  return {
    putApplication: (application) =>
      run(
        `INSERT INTO ${schema}.applications (id, created_at, record) VALUES ($1, $2, $3)
        ON CONFLICT (id) DO UPDATE SET created_at = excluded.created_at, record = excluded.record`,
        [columnText(application.id), Math.round(application.createdAt), JSON.stringify(application)],
      ),
    getApplication: applications.find,
    listApplications: () => applications.list(),
    putKey: (key) =>
      run(
        `INSERT INTO ${schema}.api_keys (id, app, created_at, record) VALUES ($1, $2, $3, $4)
        ON CONFLICT (id) DO UPDATE SET app = excluded.app, created_at = excluded.created_at, record = excluded.record`,
        [columnText(key.id), columnText(key.app), Math.round(key.createdAt), JSON.stringify(key)],
      ),
    getKey: keys.find,
    listKeys: (app) => keys.list('WHERE app = $1', [columnText(app)]),
    deleteKey: ({ id }) => run(`DELETE FROM ${schema}.api_keys WHERE id = $1`, [columnText(id)]),
  }
}

function records<Schema extends z.ZodType>(pool: PostgresPool, table: string, schema: Schema) {
  const rowOf = rowsById(pool, { table, columns: 'record', maxRows: 100 })
  const parse = ([record]: Row): z.output<Schema> => {
    const result = schema.safeParse(JSON.parse(record ?? 'null'))
    if (result.success) return result.data
    throw storeUnavailable(
      'A row of the applications or keys table is not valid. Check what else writes to these tables.',
      { cause: result.error },
    )
  }
  return {
    async find(id: string) {
      const row = await rowOf(id)
      return row && parse(row)
    },
    async list(where = '', values: unknown[] = []) {
      const sql = `SELECT record FROM ${table} ${where} ORDER BY created_at DESC, id DESC`
      return (await statement(pool, sql, values)).map(parse)
    },
  }
}
