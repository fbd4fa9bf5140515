import { hash } from 'node:crypto'
import { StemworkError, storeUnavailable } from '../../../core/engine/errors.js'
import { within } from '../../../core/engine/ports/within.js'

export interface PostgresQuery {
  /** Name of a prepared statement. */
  name?: string
  text: string
  values?: unknown[]
  rowMode?: 'array'
  types?: { getTypeParser(): (value: string) => unknown }
  query_timeout?: number
}

/** The part of a `pg` client that the stores use. A client inside the host's transaction is given as `tx`. */
export interface PostgresClient {
  query(query: PostgresQuery): Promise<{ rows: unknown[] }>
}

export interface PostgresNotification {
  channel: string
  payload?: string | undefined
}

/** The used part of a connection taken from the pool. */
export interface PostgresConnection extends PostgresClient {
  release(destroy?: boolean): void
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'notification', listener: (notification: PostgresNotification) => void): unknown
  removeListener(event: 'error', listener: (error: Error) => void): unknown
  removeListener(event: 'notification', listener: (notification: PostgresNotification) => void): unknown
}

/** The part of a `pg` Pool that stores and queue use. */
export interface PostgresPool extends PostgresClient {
  connect(): Promise<PostgresConnection>
  on?(event: 'error', listener: (error: Error) => void): unknown
  listenerCount?(event: 'error'): number
  readonly options?: { max?: number }
}

const ignore = () => {}

/** A restart of the server ends idle connections too. Without a listener, pg would end the process on each of them. */
export function surviveLostConnections(pool: PostgresPool): void {
  if (pool.listenerCount?.('error') === 0) pool.on?.('error', ignore)
}

/** Columns as the server's text, so that type parsers which the host set for its own queries change nothing here. */
export type Row = (string | null)[]

/** Sends a statement: to the pool, or in a transaction. */
export type Send = (text: string, values: unknown[]) => Promise<Row[]>

const asText = { getTypeParser: () => (value: string) => value }

/** An unreachable server is an error after this time, not a call that never ends. */
const queryTimeoutMs = 20_000
/** The same for a pool without a free connection, because all are taken or none can be made. */
const connectTimeoutMs = 10_000
const tries = 4

interface QueryOptions {
  timeoutMs?: number
  name?: string
}

/** @throws StemworkError `STORE_UNAVAILABLE`, or `TOO_LARGE` for a value that no index can hold. */
export async function query(
  client: PostgresClient,
  text: string,
  values: unknown[] = [],
  { timeoutMs = queryTimeoutMs, name }: QueryOptions = {},
): Promise<Row[]> {
  try {
    const answer = client.query({
      name,
      text,
      values,
      rowMode: 'array',
      types: asText,
      query_timeout: timeoutMs,
    })
    // pg's own limit begins only when the pool has a connection for the statement.
    const { rows } = await answered(answer, timeoutMs + connectTimeoutMs)
    return rows as Row[]
  } catch (error) {
    throw failure(error)
  }
}

/** Sends statements through a client, in a transaction. */
export function sender(client: PostgresClient): Send {
  return (text, values) => query(client, text, values)
}

/** Runs one statement, retried if the server chose it as a deadlock's victim. */
export async function statement(pool: PostgresPool, text: string, values?: unknown[]): Promise<Row[]> {
  for (let tried = 1; ; tried++) {
    try {
      return await query(pool, text, values)
    } catch (error) {
      if (tried === tries || !isLostRace(error)) throw error
    }
  }
}

const names = new Map<string, string>()

/** Pools for which named statements do not work. */
const nameless = new WeakSet<PostgresPool>()

/**
 * Like `statement`, planned once per connection: for the few whose planning takes as long as their work. Behind a
 * pooler that gives each transaction another connection (PgBouncer), a name may be unknown there, or taken; both are
 * noticed before anything is done, and from then on the pool's statements are unnamed.
 */
export async function preparedStatement(pool: PostgresPool, text: string, values?: unknown[]): Promise<Row[]> {
  if (nameless.has(pool)) return await statement(pool, text, values)
  let name = names.get(text)
  if (name === undefined) names.set(text, (name = `stemwork_${hash('sha256', text).slice(0, 32)}`))
  try {
    return await query(pool, text, values, { name })
  } catch (error) {
    if (isLostRace(error)) return await statement(pool, text, values)
    if (!isUnknownName(error)) throw error
    nameless.add(pool)
    return await statement(pool, text, values)
  }
}

/** Runs `work` in its own transaction on one connection of the pool. */
export async function transaction<Result>(
  pool: PostgresPool,
  work: (client: PostgresClient) => Promise<Result>,
): Promise<Result> {
  const connecting = pool.connect()
  const client = await answered(connecting, connectTimeoutMs).catch((error: unknown) => {
    // A connection that comes too late goes back to the pool.
    connecting.then(
      (late) => late.release(),
      () => {},
    )
    throw failure(error)
  })
  // While a connection is out of the pool, nothing else listens, and pg would end the process on its loss.
  client.on('error', ignore)
  let done = false
  try {
    // Not the server's default, which may differ: data read after a lock must not be older than the lock.
    await query(client, 'BEGIN ISOLATION LEVEL READ COMMITTED')
    const result = await work(client)
    await query(client, 'COMMIT')
    done = true
    return result
  } catch (error) {
    // A refusal of ours, or of a value: the connection is sound.
    if (StemworkError.is(error) && error.code !== 'STORE_UNAVAILABLE') {
      await query(client, 'ROLLBACK').then(
        () => (done = true),
        () => {},
      )
    }
    throw error
  } finally {
    // A connection whose transaction did not end must not serve anyone else.
    client.release(!done)
    if (done) client.removeListener('error', ignore)
  }
}

function answered<Result>(answer: Promise<Result>, timeoutMs: number): Promise<Result> {
  return within(answer, timeoutMs, () => new Error(`Postgres did not answer within ${timeoutMs} ms.`))
}

function isLostRace(error: unknown): boolean {
  return ['40P01', '40001'].includes(causeOf(error))
}

/** "Prepared statement ... does not exist", or "already exists". */
function isUnknownName(error: unknown): boolean {
  return ['26000', '42P05'].includes(causeOf(error))
}

function causeOf(error: unknown): string {
  return StemworkError.is(error) ? codeOf(error.cause) : ''
}

function failure(error: unknown): StemworkError {
  if (StemworkError.is(error)) return error
  const code = lacksPassword(error) ? '28P01' : codeOf(error)
  switch (code) {
    case '42P01':
    case '3F000':
      return storeUnavailable(
        'The tables of the job store are missing in Postgres. Call `migrate()` of `postgresStores` once before use.',
        { cause: error },
      )
    case '54000':
      return new StemworkError(
        'TOO_LARGE',
        'A field of the job that lists are searched by is too long for Postgres. Keep application, workflow, batch ' +
          'name and idempotency key below 2,000 bytes.',
        { cause: error },
      )
    case '28P01':
    case '28000':
    case '3D000':
    case '42501':
      return storeUnavailable(refusals[code], { retryable: true, cause: error })
    default: {
      // Class 22: a value that the server cannot take, class 42: a statement that it does not understand.
      const retryable = !/^(22|42)/.test(code)
      return storeUnavailable(
        'Postgres did not answer as expected. Try again. If this continues, check the cause and the server.',
        { retryable, cause: error },
      )
    }
  }
}

/** Failures that only a change of settings, of the client or the server, can fix. */
const refusals = {
  '28P01': 'Postgres refuses the user or the password. Check both in the connection string, and PGPASSWORD.',
  '28000':
    'Postgres refuses this user from here. Check the user of the connection string and pg_hba.conf of the server.',
  '3D000': 'Postgres has no such database. Create it (createdb), or name another in the connection string.',
  '42501': 'The user may not do this in Postgres. Give it the rights on the schema, or let its owner call `migrate()`.',
}

/** pg's own words, without a code, for a server that asks for a password when there is none. */
function lacksPassword(error: unknown): boolean {
  return error instanceof Error && error.message.includes('client password must be a string')
}

function codeOf(error: unknown): string {
  const code = typeof error === 'object' && error !== null ? (error as { code?: unknown }).code : undefined
  return typeof code === 'string' ? code : ''
}
