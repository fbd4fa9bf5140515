import { hash } from 'node:crypto'
import { z } from 'zod'
import { StemworkError } from '../errors.js'
import { applicationIdSchema } from '../job/application-id.js'
import { type FieldIssue, issuesText } from '../job/field-issues.js'
import { requestDigest } from '../job/idempotency.js'
import type { JobRecord } from '../job/job.js'
import { newJob } from '../job/new-job.js'
import { type BatchJob, checkSubmission, checkSubmitInput, jobRequest, type SubmitInput } from './submission.js'
import { checkInput } from '../workflow/check-input.js'
import type { WorkflowRegistry } from '../workflow/registry.js'
import { mapInTurns } from '../limits/map-in-turns.js'
import type { Turn } from '../limits/rested.js'
import { repeatedId } from '../batch/batch.js'
import type { NewBatch } from '../batch/batches.js'

/** Most jobs of one request. */
export const mostBatchJobs = 1000

export interface SubmitBatchInput<Job = BatchJob> {
  /** Application that owns the jobs. */
  app: string
  /** The `batchName` of the jobs. If the batch exists, the jobs are added to it. Default: a new name. */
  name?: string | null
  /** At most 1,000 jobs, as for `submit` except for the fields given here. */
  jobs: readonly Job[]
  /** Receiver of `batch.ended` when all jobs of the batch have ended. */
  webhook?: { url: string } | null
  /** A repeated request with the same key and content creates no second batch. */
  idempotencyKey?: string
}

const batchInputSchema = z.strictObject({
  app: applicationIdSchema,
  name: z.string().min(1).max(255).nullish(),
  jobs: z.array(z.looseObject({})).min(1).max(mostBatchJobs),
  webhook: z.strictObject({ url: z.string() }).nullish(),
  idempotencyKey: z.string().min(1).optional(),
})

/** A validated batch. */
export interface CheckedBatch {
  app: string
  name: string
  jobs: readonly SubmitInput[]
  webhook: { url: string } | null
  request: NewBatch['request']
  idempotencyKey: string | undefined
}

/**
 * The name of the batch and, if the request has an idempotency key, the data to recognize a repeat.
 *
 * @throws StemworkError `INVALID_PARAMS` for a malformed request; its jobs are not checked.
 */
export function batchRequest(given: SubmitBatchInput): Pick<CheckedBatch, 'name' | 'request'> {
  const form = checkInput(batchInputSchema, given)
  if (!form.success) {
    throw invalid(form.issues.map(({ path, message }) => ({ path: path.join('.'), message })))
  }
  const { app, name, idempotencyKey } = given
  if (idempotencyKey === undefined) return { name: name ?? crypto.randomUUID(), request: null }
  return { name: name ?? repeatedId(app, idempotencyKey, 'batch'), request: repeatable(given, idempotencyKey) }
}

/** Null for a request that is not JSON: it has no digest, and the check of its jobs refuses it with the path. */
function repeatable(given: SubmitBatchInput, idempotencyKey: string): CheckedBatch['request'] {
  try {
    return { key: hash('sha256', idempotencyKey), digest: requestDigest({ ...given, idempotencyKey: null }) }
  } catch {
    return null
  }
}

/** The ids that a request with an idempotency key gives to its jobs. */
export function repeatedIds({ app, jobs, idempotencyKey = '' }: SubmitBatchInput): string[] {
  return jobs.map((_, index) => repeatedId(app, idempotencyKey, index))
}

/**
 * Checks every job before creating any.
 *
 * @param now the store's time
 * @throws StemworkError `INVALID_PARAMS` with `details.issues` of all jobs, whose paths begin with `jobs.<index>`.
 */
export async function checkBatch(
  given: SubmitBatchInput,
  { name, request }: Pick<CheckedBatch, 'name' | 'request'>,
  workflows: WorkflowRegistry,
  now: number,
  turn?: Turn,
): Promise<CheckedBatch> {
  const { app, idempotencyKey, webhook = null } = given
  const issues: FieldIssue[] = []
  const jobs = await mapInTurns(
    given.jobs,
    (job, index): SubmitInput => {
      const input: SubmitInput = { ...job, app, batchName: name }
      try {
        const checked = checkSubmitInput(input)
        return checkSubmission(checked, workflows.require(checked.workflow), now)
      } catch (error) {
        issues.push(...issuesOf(error, index))
        return input
      }
    },
    turn,
  )
  if (issues.length > 0) throw invalid(issues)
  return { app, name, jobs, webhook, request, idempotencyKey }
}

/** The records of a batch's jobs; with an idempotency key, they have the same ids each time. */
export function jobsOfBatch(
  { app, jobs, idempotencyKey }: CheckedBatch,
  fieldsOf: (input: SubmitInput) => Pick<JobRecord, 'workflow' | 'alias' | 'webhook' | 'pool' | 'metered'>,
  turn?: Turn,
): Promise<JobRecord[]> {
  return mapInTurns(
    jobs,
    (input, index) => {
      const { webhook, ...fields } = fieldsOf(input)
      const job = newJob({ ...jobRequest(input, webhook, null), ...fields })
      return idempotencyKey === undefined ? job : { ...job, id: repeatedId(app, idempotencyKey, index) }
    },
    turn,
  )
}

function issuesOf(error: unknown, index: number): FieldIssue[] {
  if (!StemworkError.is(error)) throw error
  const { issues } = error.details
  const at = (path: string) => (path === '' ? `jobs.${index}` : `jobs.${index}.${path}`)
  if (Array.isArray(issues)) return (issues as FieldIssue[]).map(({ path, message }) => ({ path: at(path), message }))
  const path = at(error.code === 'UNKNOWN_WORKFLOW' ? 'workflow' : '')
  // Issues have no full stop at the end.
  return [{ path, message: error.message.replace(/\.$/, '') }]
}

function invalid(issues: FieldIssue[]): StemworkError {
  const message = `Invalid batch; none of its jobs was created: ${issuesText(issues)}.`
  return new StemworkError('INVALID_PARAMS', message, { details: { issues } })
}
