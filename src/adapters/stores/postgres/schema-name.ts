import { invalidOptions } from '../../../core/engine/errors.js'

/** @throws StemworkError `INVALID_OPTIONS` for anything but a lower-case identifier. */
export function requireSchemaName(schema: string): void {
  if (/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) return
  throw invalidOptions(
    `${JSON.stringify(schema)} is not a schema name. Expected lower-case letters, digits and "_", not beginning ` +
      'with a digit, at most 63.',
  )
}
