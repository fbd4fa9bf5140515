import { StemworkError } from './errors.js'
import { fieldIssues, issuesText } from './job/field-issues.js'
import { requestDigest } from './job/idempotency.js'
import type { JobRecord } from './job/job.js'
import type { JobRequest } from './job/new-job.js'
import type { Workflow } from './workflow/workflow.js'

export interface SubmitInput {
  /** Application that owns the job. */
  app: string
  workflow: string
  params: Record<string, unknown>
  name?: string | null
  batchName?: string | null
  metadata?: Record<string, string>
  /** Blob keys of inputs that were uploaded to this service, by param name; they are read instead of the param's URL. */
  uploads?: Record<string, string>
  copyResultsTo?: Record<string, string>
  webhook?: { url: string; events?: string[] | null } | null
  /** A repeated submit with the same key and the same content returns the first job instead of making another. */
  idempotencyKey?: string
}

export interface SubmitOptions {
  /** A transaction of the host's: the job becomes visible with its commit, in a store that supports it. */
  tx?: unknown
  /** Called before a new job is made, not for a repeated request; what it throws is thrown. */
  beforeCreate?: () => Promise<void>
}

/** @throws StemworkError `INVALID_PARAMS` with `details.issues` (`path`, `message`). */
export function checkSubmission(input: SubmitInput, workflow: Workflow): void {
  const checked = workflow.params.safeParse(input.params)
  if (!checked.success) {
    const found = checked.error.issues
    const issues = fieldIssues(found, ['params'])
    throw new StemworkError(
      'INVALID_PARAMS',
      `Invalid params for ${workflow.id}: ${issuesText(issues, found.length)}.`,
      { details: { issues } },
    )
  }
  refuseUnknownOutputs(
    input.copyResultsTo ?? {},
    workflow,
    Object.keys(workflow.outputs(checked.data as Record<string, unknown>)),
  )
}

export function idempotencyOf(input: SubmitInput): JobRecord['idempotency'] {
  if (input.idempotencyKey === undefined) return null
  return { key: input.idempotencyKey, digest: requestDigest({ ...input, idempotencyKey: null }) }
}

/** @throws StemworkError `IDEMPOTENCY_CONFLICT` if the job that holds the key was made from another request. */
export function requireSameRequest(job: JobRecord, idempotency: JobRecord['idempotency']): JobRecord {
  if (job.idempotency?.digest === idempotency?.digest) return job
  throw new StemworkError(
    'IDEMPOTENCY_CONFLICT',
    'This idempotency key was used for a different job. Use a new key for a new job, or repeat the first request unchanged.',
  )
}

export function jobRequest(
  input: SubmitInput,
  webhook: JobRecord['webhook'],
  idempotency: JobRecord['idempotency'],
): JobRequest {
  const {
    app,
    workflow,
    params,
    name = null,
    batchName = null,
    metadata = {},
    uploads = {},
    copyResultsTo = {},
  } = input
  return { app, workflow, params, name, batchName, metadata, uploads, copyResultsTo, webhook, idempotency }
}

function refuseUnknownOutputs(copies: Record<string, string>, workflow: Workflow, outputs: string[]): void {
  const unknown = Object.keys(copies).filter((name) => !outputs.includes(name))
  if (unknown.length === 0) return
  const message = `${workflow.id} has no such output; it has ${outputs.join(', ') || 'none'}`
  const issues = fieldIssues(
    unknown.map((name) => ({ path: [name], message })),
    ['copyResultsTo'],
  )
  throw new StemworkError('INVALID_PARAMS', `Invalid copyResultsTo: ${issuesText(issues, unknown.length)}.`, {
    details: { issues },
  })
}
