import { Pool } from 'pg'
import { vi } from 'vitest'

/**
 * A pool on whose connections the server's `clock_timestamp()` stands still until a test moves it: a function of this
 * name is in a schema searched before the built-in one. No lease expires because the machine is slow. The store's
 * local clock stands still, too.
 */
export async function poolWithClock(connectionString: string, schema: string, start = Date.now()) {
  const clock = `${schema}_clock`
  const pool = new Pool({ connectionString, options: `-c search_path=${clock},pg_catalog` })
  await pool.query(`CREATE SCHEMA ${clock};
    CREATE TABLE ${clock}.clock AS SELECT to_timestamp(${start / 1000}) AS now;
    CREATE FUNCTION ${clock}.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
      AS 'SELECT now FROM ${clock}.clock'`)
  let localNow = Math.floor(performance.now())
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => localNow)
  return {
    pool,
    async advance(milliseconds: number) {
      localNow += milliseconds
      await pool.query(`UPDATE ${clock}.clock SET now = now + $1::float8 * interval '1 ms'`, [milliseconds])
    },
    async end() {
      spy.mockRestore()
      await pool.query(`DROP SCHEMA ${schema}, ${clock} CASCADE`)
      await pool.end()
    },
  }
}
