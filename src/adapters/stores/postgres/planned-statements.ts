import { createHash } from 'node:crypto'
import { StemworkError } from '../../../core/engine/errors.js'
import { type PostgresClient, query, type Row } from './database.js'

type Send = (text: string, values: unknown[]) => Promise<Row[]>

/** A statement whose plan takes longer than its work. */
export interface PlannedStatement {
  name: string
  text: string
  /** Types of its parameters and columns. */
  parameters: readonly string[]
  columns: readonly string[]
}

/**
 * Postgres plans a prepared statement anew for its first five calls on each connection, and whenever it believes that
 * this pays: some milliseconds each, so that every connection that is added slows the others. In a function it can be
 * told to plan once, for any values. Its name follows from its text: nodes of several versions have theirs side by
 * side.
 */
function functionOf(schema: string, { name, text, parameters, columns }: PlannedStatement) {
  const hash = createHash('sha256')
    .update(JSON.stringify([text, parameters, columns]))
    .digest('hex')
  const own = `${schema}.${name}_${hash.slice(0, 16)}`
  const signature = `${own}(${parameters.join(', ')})`
  return {
    signature,
    definition: `CREATE FUNCTION ${signature} RETURNS SETOF record LANGUAGE plpgsql
      SET plan_cache_mode = force_generic_plan SET jit = off AS $function$ BEGIN RETURN QUERY ${text}; END $function$`,
    call: `SELECT * FROM ${own}(${parameters.map((_, at) => `$${at + 1}`).join(', ')})
      AS planned(${columns.map((type, at) => `column${at} ${type}`).join(', ')})`,
  }
}

/** Makes the functions that are missing. */
export async function createFunctions(
  client: PostgresClient,
  schema: string,
  statements: readonly PlannedStatement[],
): Promise<void> {
  for (const planned of statements) {
    const { signature, definition } = functionOf(schema, planned)
    const [known] = await query(client, 'SELECT to_regprocedure($1)::text', [signature])
    if (known?.[0] === null) await query(client, definition)
  }
}

/** Calls the statement by its function, or as it is where `migrate()` has not made that. */
export function plannedCall(
  schema: string,
  planned: PlannedStatement,
): (send: Send, values: unknown[]) => Promise<Row[]> {
  const { call } = functionOf(schema, planned)
  let isMissing = false
  return async (send, values) => {
    if (isMissing) return await send(planned.text, values)
    try {
      return await send(call, values)
    } catch (error) {
      if (!isUndefinedFunction(error)) throw error
      isMissing = true
      return await send(planned.text, values)
    }
  }
}

function isUndefinedFunction(error: unknown): boolean {
  return StemworkError.is(error) && (error.cause as { code?: unknown } | undefined)?.code === '42883'
}
