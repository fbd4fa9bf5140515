import { requireOption, requireTimes } from '../../../core/engine/errors.js'
import type { ApplicationStore } from '../../../core/engine/ports/application-store.js'
import type { JobStore } from '../../../core/engine/ports/job-store.js'
import { type PostgresPool, surviveLostConnections } from './database.js'
import { migrate } from './migrations.js'
import { postgresApplications } from './postgres-applications.js'
import { postgresJobs } from './postgres-jobs.js'
import { requireSchemaName } from './schema-name.js'

export interface PostgresStoresOptions {
  /**
   * The host's `pg` Pool. The stores never end it. Give it a `connectionTimeoutMillis`: without one, pg counts a
   * connection that is never made against the size of its pool, forever. Where Postgres has `jit` on (its default), an
   * `onConnect: (client) => client.query('SET jit = off')` makes long lists two to three times as fast.
   */
  pool: PostgresPool
  /** Schema of the tables: a lower-case identifier. Default: `stemwork`. */
  schema?: string
  /** How long an idempotency key keeps pointing at the job that it made. Default: 24 h. */
  idempotencyMs?: number
}

export interface PostgresStores {
  jobs: JobStore
  applications: ApplicationStore
  /** Makes the schema and its tables, or brings them up to date. Safe when several nodes start at once. */
  migrate(this: void): Promise<void>
}

/**
 * Jobs and applications in the host's Postgres (12 or later), for any number of processes. Times are the database's. A
 * `tx` for `engine.submit` is the `pg` client of a transaction of the host's: the job exists if and only if that
 * commits.
 *
 * @example
 * const pool = new Pool({ connectionString: process.env.DATABASE_URL })
 * const { jobs, applications, migrate } = postgresStores({ pool })
 * await migrate()
 * const engine = createEngine({ jobs, applications, queue: postgresQueue({ pool }), blobs })
 * @throws StemworkError `INVALID_OPTIONS`.
 */
export function postgresStores(options: PostgresStoresOptions): PostgresStores {
  const { pool, schema = 'stemwork', idempotencyMs = 24 * 60 * 60 * 1000 } = options ?? {}
  requireOption(typeof pool?.query === 'function', options, 'postgresStores({ pool })', 'a Pool of the package pg')
  requireSchemaName(schema)
  requireTimes('postgresStores', { idempotencyMs })
  surviveLostConnections(pool)
  const quoted = `"${schema}"`
  return {
    jobs: postgresJobs(pool, quoted, idempotencyMs),
    applications: postgresApplications(pool, quoted),
    migrate: () => migrate(pool, quoted),
  }
}
