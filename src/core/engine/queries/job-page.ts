import { z } from 'zod'
import { StemworkError } from '../errors.js'
import { checkInput } from '../workflow/check-input.js'
import { jobFilters } from '../ports/job-query.js'

const filterSchemas = Object.fromEntries(
  Object.entries(jobFilters).map(([field, { schema }]) => [field, schema.optional()]),
)

const pageSchema = z.strictObject({
  limit: z.number().int().nonnegative(),
  offset: z.number().int().nonnegative().optional(),
  after: z.object({ createdAt: z.number(), id: z.string() }).optional(),
  ...filterSchemas,
})

/** @throws StemworkError `INVALID_PARAMS` that names the known fields. */
export function checkPage(page: unknown): void {
  const checked = checkInput(pageSchema, page)
  if (checked.success) return
  const [issue] = checked.issues
  throw new StemworkError(
    'INVALID_PARAMS',
    `engine.list: ${issue?.path.join('.') || 'page'}: ${issue?.message}. It takes ` +
      `${Object.keys(pageSchema.shape).join(', ')}; \`limit\` is needed.`,
  )
}
