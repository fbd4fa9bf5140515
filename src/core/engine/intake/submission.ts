import { z } from 'zod'
import { StemworkError } from '../errors.js'
import { applicationIdSchema } from '../job/application-id.js'
import { invalidParams } from '../job/field-issues.js'
import { requestDigest } from '../job/idempotency.js'
import type { JobRecord } from '../job/job.js'
import type { TraceContext } from '../job/trace-context.js'
import { prioritySchema } from '../job/scheduling.js'
import type { JobRequest } from '../job/new-job.js'
import { addressOf, isLocalFile, type LocalFile } from './local-file.js'
import { nameableEvents } from '../webhooks/webhook-message.js'
import { checkInput } from '../workflow/check-input.js'
import type { Workflow } from '../workflow/workflow.js'

export interface SubmitInput {
  /** Application that owns the job: 1 to 128 letters, digits and `._-`. */
  app: string
  /** The workflow's id, or an alias. */
  workflow: string
  /** Params for the workflow, by its schema. Default: `{}`. */
  params?: Record<string, unknown>
  /** Local files (`localFile`) by input name, instead of URLs in `params`. They are copied into the blob store. */
  inputs?: Record<string, LocalFile>
  /** Shown in lists, searched, and part of the names of downloads. */
  name?: string | null
  /** Jobs with the same batch name belong together. */
  batchName?: string | null
  /** Your own labels, which are returned but not interpreted. */
  metadata?: Record<string, string>
  /** Blob keys of uploaded inputs by param name, which are read instead of the param's URL. */
  uploads?: Record<string, string>
  /** PUT URLs in your own storage by output name, to which results are copied. */
  copyResultsTo?: Record<string, string>
  /** Receiver of a signed message at each of the `events`. Default: `job.succeeded` and `job.failed`. */
  webhook?: { url: string; events?: string[] | null } | null
  /** Priority within the application, from -2 (last) to 2 (first). Default: 0. */
  priority?: number
  /** The job does not start before this time, in epoch milliseconds. */
  notBefore?: number | null
  /** A job that has not ended by this time, in epoch milliseconds, ends FAILED with the reason `deadline`. */
  deadline?: number | null
  /** A repeated submit with the same key and the same content returns the first job instead of creating another. */
  idempotencyKey?: string
}

/**
 * The argument of `submit` for one of these workflows, with params typed by its id. A file param may be in `inputs`
 * instead. `SubmitInput` if the id is known only at run time.
 */
export type SubmitInputOf<Offered extends Workflow, Id extends string = Offered['id']> = string extends Offered['id']
  ? SubmitInput
  : string extends Id
    ? SubmitInput
    : [Id] extends [Offered['id']]
      ? SubmitInputs<Offered>[Id]
      : { workflow: OneOf<Offered['id']> }

/** Not a text, so that the compiler's message about an unknown id lists the known ones. */
export interface OneOf<Known extends string> {
  readonly known: Known
}

type SubmitInputs<Offered extends Workflow> = {
  [One in Offered as One['id']]: unknown extends TypesOf<One>['params'] ? SubmitInput : TypedSubmission<One>
}

/** A job of a batch: without the fields that the batch has, and without `inputs`. */
export type BatchJob = Omit<SubmitInput, OfBatch | 'inputs'>
type OfBatch = 'app' | 'batchName' | 'idempotencyKey'

/** Jobs of a batch for some of these workflows, as `SubmitInputOf` for one. */
export type BatchJobOf<Offered extends Workflow, Id extends string> = string extends Offered['id']
  ? BatchJob
  : string extends Id
    ? BatchJob
    : [Id] extends [Offered['id']]
      ? BatchJobs<Offered>[Id]
      : { workflow: OneOf<Offered['id']> }

type BatchJobs<Offered extends Workflow> = {
  [One in Offered as One['id']]: unknown extends TypesOf<One>['params']
    ? BatchJob
    : Omit<SubmissionFields<One>, OfBatch> & ParamsField<TypesOf<One>['params']>
}

/** Any text; editors suggest the known ids. */
export type IdOf<Offered extends Workflow> = Offered['id'] | (string & Record<never, never>)

type TypedSubmission<Offered extends Workflow> = SubmissionFields<Offered> &
  (
    | (ParamsField<TypesOf<Offered>['params']> & { inputs?: never })
    | (ParamsField<WithoutFiles<TypesOf<Offered>>> & { inputs: FilesOf<Offered, LocalFile> })
  )

interface SubmissionFields<Offered extends Workflow> extends Omit<
  SubmitInput,
  'workflow' | 'params' | 'inputs' | 'uploads' | 'copyResultsTo'
> {
  workflow: Offered['id']
  uploads?: FilesOf<Offered, string>
  copyResultsTo?: { [Name in keyof TypesOf<Offered>['result']]?: string }
}

type TypesOf<Offered extends Workflow> = NonNullable<Offered['types']>
type FilesOf<Offered extends Workflow, File> = [TypesOf<Offered>['input']] extends [never]
  ? Record<string, never>
  : { [Name in TypesOf<Offered>['input']]?: File }

/** Params of which files may be omitted. */
type WithoutFiles<Types extends { params: unknown; input: string }> = Omit<Types['params'], Types['input']> & {
  [Name in Types['input'] & keyof Types['params']]?: Types['params'][Name]
}

/** `params` may be omitted if none is required. */
type ParamsField<Params> = Record<never, never> extends Params ? { params?: Plain<Params> } : { params: Plain<Params> }

/** A type, because an interface is not assignable to a record with arbitrary names. */
type Plain<Params> = { [Name in keyof Params]: Params[Name] }

export interface SubmitOptions {
  /** A transaction of the host: the job becomes visible on commit, in stores that support this. */
  tx?: unknown
  /** Called before a new job is created, but not for a repeated request; `submit` throws its errors. */
  beforeCreate?: () => Promise<void>
  /** The caller's position in its trace (W3C Trace Context), which the job joins. Default: what `tracing` finds. */
  trace?: TraceContext
}

/** Bounded far below the latest time that a date can represent, so that durations can be added. */
const time = z.number().int().nonnegative().max(1e15)
const texts = z.record(z.string(), z.string())

/** Whether params can be stored as JSON, which a workflow's schema need not ensure. */
function isJson(params: unknown): boolean {
  try {
    JSON.stringify(params)
    return true
  } catch {
    return false
  }
}

const submitInputSchema = z.strictObject({
  app: applicationIdSchema,
  workflow: z.string().min(1),
  params: z
    .record(
      z.string(),
      z.unknown().refine((value) => !isLocalFile(value), 'localFile(path) goes into inputs, not into params'),
    )
    .refine(isJson, 'must be JSON, without a BigInt or an object that contains itself')
    .optional(),
  inputs: z
    .record(
      z.string(),
      z.custom<LocalFile>(isLocalFile, 'must be localFile(path); an address goes into params, an upload into uploads'),
    )
    .optional(),
  name: z.string().nullish(),
  batchName: z.string().nullish(),
  metadata: texts.optional(),
  uploads: texts.optional(),
  copyResultsTo: texts.optional(),
  webhook: z.object({ url: z.string(), events: z.array(z.enum(nameableEvents)).nullish() }).nullish(),
  priority: prioritySchema.optional(),
  notBefore: time.nullish(),
  deadline: time.nullish(),
  idempotencyKey: z.string().min(1).optional(),
}) satisfies z.ZodType<SubmitInput>

/** @throws StemworkError `INVALID_PARAMS` with `details.issues` for a malformed submission, whatever its workflow. */
export function checkSubmitInput(input: unknown): SubmitInput {
  const checked = checkInput(submitInputSchema, input)
  if (checked.success) return input as SubmitInput
  throw invalidParams('engine.submit', checked.issues)
}

/**
 * Checks a submission against its workflow, and returns it with URLs for its local files.
 *
 * @param now the store's time
 * @throws StemworkError `INVALID_PARAMS` with `details.issues` (`path`, `message`).
 */
export function checkSubmission(given: SubmitInput, workflow: Workflow, now: number): SubmitInput {
  const input = withAddresses(given, workflow)
  const checked = checkInput(workflow.params, input.params)
  if (!checked.success) {
    const advice = ' Correct them, then submit the job again.'
    throw invalidParams(`Invalid params for ${workflow.id}`, checked.issues, { prefix: ['params'], advice })
  }
  refuseImpossibleTimes(input, now)
  refuseUnknownOutputs(input, workflow, checked.data as Record<string, unknown>)
  return input
}

export function idempotencyOf(input: SubmitInput): JobRecord['idempotency'] {
  if (input.idempotencyKey === undefined) return null
  return { key: input.idempotencyKey, digest: requestDigest({ ...input, idempotencyKey: null }) }
}

/** @throws StemworkError `IDEMPOTENCY_CONFLICT` if the job with this key was created from a different request. */
export function requireSameRequest(job: JobRecord, idempotency: JobRecord['idempotency']): JobRecord {
  if (job.idempotency?.digest === idempotency?.digest) return job
  throw new StemworkError(
    'IDEMPOTENCY_CONFLICT',
    'This idempotency key was used for a different job. Use a new key for a new job, or repeat the first request ' +
      'unchanged.',
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
    params = {},
    name = null,
    batchName = null,
    metadata = {},
    uploads = {},
    copyResultsTo = {},
    priority = 0,
  } = input
  const [notBefore, deadline] = [input.notBefore ?? 0, input.deadline ?? null]
  const request = { app, workflow, params, name, batchName, metadata, uploads, copyResultsTo, webhook, idempotency }
  return { ...request, priority, notBefore, deadline }
}

function refuseImpossibleTimes({ notBefore, deadline }: SubmitInput, now: number): void {
  if (deadline === undefined || deadline === null || deadline > Math.max(notBefore ?? 0, now)) return
  throw invalidParams('Invalid deadline', [
    { path: ['deadline'], message: 'must lie in the future, and after notBefore' },
  ])
}

function withAddresses(input: SubmitInput, workflow: Workflow): SubmitInput {
  const { params = {}, inputs = {}, uploads = {} } = input
  const issues = Object.keys(inputs).flatMap((name) => {
    const known = workflow.inputs.includes(name)
    if (known && !(name in params) && !(name in uploads)) return []
    const message = known
      ? 'is given in params or uploads, too; give one of them'
      : `is not an input of ${workflow.id}; it has ${workflow.inputs.join(', ') || 'none'}`
    return [{ path: [name], message }]
  })
  if (issues.length > 0) throw invalidParams('Invalid inputs', issues, { prefix: ['inputs'] })
  const addresses = Object.entries(inputs).map(([name, file]) => [name, addressOf(file)])
  return { ...input, params: { ...params, ...Object.fromEntries(addresses) } }
}

function refuseUnknownOutputs(input: SubmitInput, workflow: Workflow, params: Record<string, unknown>): void {
  const outputs = Object.keys(workflow.outputs(params))
  const unknown = Object.keys(input.copyResultsTo ?? {}).filter((name) => !outputs.includes(name))
  const message = `${workflow.id} has no such output; it has ${outputs.join(', ') || 'none'}`
  const issues = unknown.map((name) => ({ path: [name], message }))
  if (issues.length > 0) throw invalidParams('Invalid copyResultsTo', issues, { prefix: ['copyResultsTo'] })
}
