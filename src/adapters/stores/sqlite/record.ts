import type { z } from 'zod'
import { storeUnavailable } from '../../../core/engine/errors.js'

/** A record as it was written; what lies in the file may have been changed by others, so it is checked. */
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
