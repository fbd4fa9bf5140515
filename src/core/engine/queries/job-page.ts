import { z } from 'zod'
import { StemworkError } from '../errors.js'
import type { JobPage } from '../ports/job-store.js'
import { jobStatusSchema } from '../job/job.js'

const pageSchema = z.strictObject({
  limit: z.number().int().nonnegative(),
  offset: z.number().int().nonnegative().optional(),
  after: z.object({ createdAt: z.number(), id: z.string() }).optional(),
  app: z.string().optional(),
  statuses: z.array(jobStatusSchema).readonly().optional(),
  workflows: z.array(z.string()).readonly().optional(),
  batchName: z.string().optional(),
  createdAfter: z.number().optional(),
  createdBefore: z.number().optional(),
  uploadKey: z.string().optional(),
}) satisfies z.ZodType<JobPage>

/** @throws StemworkError `INVALID_PARAMS` that names the known fields. */
export function checkPage(page: unknown): void {
  const checked = pageSchema.safeParse(page)
  if (checked.success) return
  const [issue] = checked.error.issues
  throw new StemworkError(
    'INVALID_PARAMS',
    `engine.list: ${issue?.path.join('.') || 'page'}: ${issue?.message}. It takes ` +
      `${Object.keys(pageSchema.shape).join(', ')}; \`limit\` is needed.`,
  )
}
