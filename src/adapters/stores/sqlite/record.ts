import type { z } from 'zod'
import { storeUnavailable } from '../../../core/engine/errors.js'

/** Parses a record and checks it, because others may have changed the file. */
export function parseRecord<Schema extends z.ZodType>(schema: Schema, text: string): z.output<Schema> {
  try {
    return schema.parse(JSON.parse(text))
  } catch (cause) {
    throw storeUnavailable(
      'A record in the job database does not have the format that this version expects. Was it changed by hand, or ' +
        'written by a newer version?',
      { cause },
    )
  }
}
