import { StemworkError } from '../../core/errors.js'

export interface PostgresQuery {
  text: string
  values?: unknown[]
  rowMode?: 'array'
  types?: { getTypeParser(): (value: string) => unknown }
  query_timeout?: number
}

/** What the stores use of a `pg` client. A client inside the host's transaction is given as `tx`. */
export interface PostgresClient {
  query(query: PostgresQuery): Promise<{ rows: unknown[] }>
}

/** What the stores use of a `pg` Pool. */
export interface PostgresPool extends PostgresClient {
  connect(): Promise<PostgresClient & { release(error?: boolean): void }>
  on?(event: 'error', listener: (error: Error) => void): unknown
  listenerCount?(event: 'error'): number
}

/** Columns as the server's text, so that type parsers which the host set for its own queries change nothing here. */
export type Row = (string | null)[]

const asText = { getTypeParser: () => (value: string) => value }

/** An unreachable server is an error after this time, not a call that never ends. */
const queryTimeoutMs = 20_000
const tries = 4

/** @throws StemworkError `STORE_UNAVAILABLE`, or `TOO_LARGE` for a value that no index can hold. */
export async function query(client: PostgresClient, text: string, values: unknown[] = [], timeoutMs = queryTimeoutMs): Promise<Row[]> {
  try {
    const { rows } = await client.query({ text, values, rowMode: 'array', types: asText, query_timeout: timeoutMs })
    return rows as Row[]
  } catch (error) {
    throw failure(error)
  }
}

/** One statement on its own, tried again when the server chose it as a deadlock's victim. */
export async function statement(pool: PostgresPool, text: string, values?: unknown[]): Promise<Row[]> {
  for (let tried = 1; ; tried++) {
    try {
      return await query(pool, text, values)
    } catch (error) {
      if (tried === tries || !isLostRace(error)) throw error
    }
  }
}

/** Runs `work` in a transaction of its own on one connection of the pool. */
export async function transaction<Result>(pool: PostgresPool, work: (client: PostgresClient) => Promise<Result>): Promise<Result> {
  const client = await pool.connect().catch((error: unknown) => {
    throw failure(error)
  })
  let done = false
  try {
    await query(client, 'BEGIN')
    const result = await work(client)
    await query(client, 'COMMIT')
    done = true
    return result
  } finally {
    // A connection whose transaction did not end must not serve anyone else.
    client.release(!done)
  }
}

/** An array parameter in the server's own notation; many times faster than pg's, which looks at each value's type anew. */
export function arrayOf(values: readonly (string | number | boolean | null)[]): string {
  return `{${values.map((value) => (typeof value === 'string' ? `"${/["\\]/.test(value) ? value.replace(/["\\]/g, '\\$&') : value}"` : String(value))).join(',')}}`
}

function isLostRace(error: unknown): boolean {
  const code = StemworkError.is(error) ? codeOf(error.cause) : ''
  return code === '40P01' || code === '40001'
}

function failure(error: unknown): StemworkError {
  if (StemworkError.is(error)) return error
  const code = codeOf(error)
  switch (code) {
    case '42P01':
    case '3F000':
      return new StemworkError('STORE_UNAVAILABLE', 'The tables of the job store are missing in Postgres. Call `migrate()` of `postgresStores` once before use.', { cause: error })
    case '54000':
      return new StemworkError('TOO_LARGE', 'A field of the job that lists are searched by is too long for Postgres. Keep application, workflow, batch name and idempotency key below 2,000 bytes.', { cause: error })
    default: {
      // Class 22: a value that the server cannot take, class 42: a statement that it does not understand.
      const retryable = !/^(22|42)/.test(code)
      return new StemworkError('STORE_UNAVAILABLE', 'Postgres did not answer as expected. Try again; if it goes on, look at the cause and at the server.', { retryable, cause: error })
    }
  }
}

function codeOf(error: unknown): string {
  const code = typeof error === 'object' && error !== null ? (error as { code?: unknown }).code : undefined
  return typeof code === 'string' ? code : ''
}
