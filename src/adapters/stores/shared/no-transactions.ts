import { invalidOptions } from '../../../core/engine/errors.js'

/**
 * @param store as in `The memory store`
 * @throws StemworkError `INVALID_OPTIONS` for a transaction.
 */
export function refuseTransaction(store: string, tx: unknown): void {
  if (tx === undefined) return
  throw invalidOptions(
    `${store} cannot join a transaction. Call without \`tx\`, or use a store that joins yours, such as Postgres.`,
  )
}
