import { hash } from 'node:crypto'
import { StemworkError } from '../../../core/engine/errors.js'
import { lockSchema } from './advisory-locks.js'
import { type PostgresClient, type PostgresPool, query, type Row, type Send, transaction } from './database.js'

/** A function for work that takes longer to plan than to do, or that needs several statements. */
export interface PlannedFunction {
  name: string
  /** PL/pgSQL code. */
  body: string
  /** Types of its parameters and columns. */
  parameters: string
  columns: string
}

/**
 * Postgres plans a prepared statement again for its first five calls on each connection, and whenever it believes that
 * this pays: some milliseconds each, so that every additional connection slows the others. In a function it can be told
 * to plan once, for any values. The name is derived from the text: nodes of several versions have theirs side by side.
 */
function definitionOf(schema: string, { name, body, parameters, columns }: PlannedFunction) {
  const digest = hash('sha256', JSON.stringify([body, parameters, columns]))
  const own = `${schema}.${name}_${digest.slice(0, 16)}`
  const signature = `${own}(${parameters})`
  return {
    signature,
    definition: `CREATE FUNCTION ${signature} RETURNS SETOF record LANGUAGE plpgsql
      SET plan_cache_mode = force_generic_plan SET jit = off AS $function$ ${body} $function$`,
    call: `SELECT * FROM ${own}(${each(parameters, (_, at) => `$${at + 1}`)})
      AS planned(${each(columns, (type, at) => `column${at} ${type}`)})`,
  }
}

function each(types: string, text: (type: string, at: number) => string): string {
  return types.split(', ').map(text).join(', ')
}

/** Makes the missing functions. Nodes that find one missing at the same time make it once. */
export async function createFunctions(
  client: PostgresClient,
  schema: string,
  functions: readonly PlannedFunction[],
): Promise<void> {
  await lockSchema(client, schema, 'functions')
  for (const planned of functions) {
    const { signature, definition } = definitionOf(schema, planned)
    const [known] = await query(client, 'SELECT to_regprocedure($1)::text', [signature])
    if (known?.[0] === null) await query(client, definition)
  }
}

/** Calls the function. If `migrate()` of another version has not made it, it is made now. */
export function plannedCall(
  pool: PostgresPool,
  schema: string,
  planned: PlannedFunction,
): (values: unknown[], through: <Result>(work: (send: Send) => Promise<Result>) => Promise<Result>) => Promise<Row[]> {
  const { call } = definitionOf(schema, planned)
  return async (values, through) => {
    const run = () => through((send) => send(call, values))
    try {
      return await run()
    } catch (error) {
      if (!isUndefinedFunction(error)) throw error
      await transaction(pool, (client) => createFunctions(client, schema, [planned]))
      return await run()
    }
  }
}

function isUndefinedFunction(error: unknown): boolean {
  return StemworkError.is(error) && (error.cause as { code?: unknown } | undefined)?.code === '42883'
}
