import { Pool } from 'pg'
import { vi } from 'vitest'

/**
 * A pool on whose connections the server's `clock_timestamp()` is ahead as far as a test says: its own function of that
 * name, in a schema that is searched before the built-in one. The store's local clock goes ahead with it.
 */
export async function poolWithClock(connectionString: string, schema: string) {
  const clock = `${schema}_clock`
  const pool = new Pool({ connectionString, options: `-c search_path=${clock},pg_catalog` })
  await pool.query(`CREATE SCHEMA ${clock};
    CREATE TABLE ${clock}.ahead AS SELECT interval '0' AS by;
    CREATE FUNCTION ${clock}.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
      AS 'SELECT pg_catalog.clock_timestamp() + by FROM ${clock}.ahead'`)
  const localNow = performance.now.bind(performance)
  let aheadMs = 0
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => localNow() + aheadMs)
  return {
    pool,
    async advance(milliseconds: number) {
      aheadMs += milliseconds
      await pool.query(`UPDATE ${clock}.ahead SET by = $1::float8 * interval '1 ms'`, [aheadMs])
    },
    async end() {
      spy.mockRestore()
      await pool.query(`DROP SCHEMA ${schema}, ${clock} CASCADE`)
      await pool.end()
    },
  }
}
