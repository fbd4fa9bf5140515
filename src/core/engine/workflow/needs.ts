import { labelSchema } from '../job/pool.js'
import { invalidOptions } from '../errors.js'
import type { Workflow } from './workflow.js'

/**
 * The labels that a worker must have for a job with these params.
 *
 * @throws StemworkError `INVALID_OPTIONS` for an invalid label.
 */
export function needsOf(
  { id, needs }: Pick<Workflow, 'id' | 'needs'>,
  params: Record<string, unknown>,
): readonly string[] {
  const labels = typeof needs === 'function' ? needs(params) : (needs ?? [])
  for (const label of labels)
    if (!labelSchema.safeParse(label).success)
      throw invalidOptions(
        `Workflow ${id}: ${JSON.stringify(label)} is not a valid label. Expected 1 to 60 letters, digits, ".", ` +
          '"_", ":" and "-", then "=" and a number of units if it is an amount.',
      )
  return labels
}
