import { type PostgresClient, query } from './database.js'

/** Arbitrary numbers, unused by other advisory locks of the database: with a hash, each is one lock per schema. */
const lockClasses = { migrations: 0x57e3, claims: 0x57e5, functions: 0x57e6 }
/** Class of the locks for creates: with the hash of the schema and the application, one lock per application. */
export const createsClass = 0x57e4

/** Waits for a lock of the schema, and holds it until the transaction ends. */
export async function lockSchema(
  client: PostgresClient,
  schema: string,
  name: keyof typeof lockClasses,
  timeoutMs?: number,
): Promise<void> {
  const values = [lockClasses[name], schema]
  await query(client, 'SELECT pg_advisory_xact_lock($1::int, hashtext($2))', values, { timeoutMs })
}
