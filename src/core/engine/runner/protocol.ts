import { z } from 'zod'
import { errorText } from '../job/error-text.js'
import { stepStateSchema } from '../job/step.js'
import { StemworkError, type ErrorCode, type FailureReason } from '../errors.js'
import { traceContextSchema } from '../job/trace-context.js'
import type { KeptStep, WorkOrder, WorkProgress, WorkResult } from '../ports/runner.js'

const inputFileSchema = z.object({ path: z.string(), bytes: z.number(), name: z.string().optional() })
const filesSchema = z.record(z.string(), inputFileSchema)

const stepResultSchema = z.object({ value: z.unknown(), files: filesSchema })
const keptStepSchema = stepStateSchema.extend(stepResultSchema.shape) satisfies z.ZodType<KeptStep>

const workOrderSchema = z.object({
  jobId: z.string(),
  workflow: z.string(),
  module: z.string().nullable(),
  settings: z.unknown(),
  params: z.record(z.string(), z.unknown()),
  inputs: filesSchema,
  directory: z.string(),
  limits: z.looseObject({ maxAudioSeconds: z.number() }),
  checkpoint: z
    .object({
      parts: z.array(z.object({ path: z.string(), bytes: z.number() })),
      afterMs: z.number(),
      everyMs: z.number(),
      maxBytes: z.number(),
    })
    .optional(),
  steps: z.array(stepStateSchema).optional(),
  offers: z.array(z.string()).optional(),
  trace: traceContextSchema.optional(),
}) satisfies z.ZodType<WorkOrder>

const workProgressSchema = z.object({
  stage: z.string(),
  progress: z.number().min(0).max(1),
}) satisfies z.ZodType<WorkProgress>

const workResultSchema = z.object({
  outputs: z.record(
    z.string(),
    z.object({
      path: z.string(),
      bytes: z.number(),
      contentType: z.string(),
      fileName: z.string(),
      downloadName: z.string().optional(),
    }),
  ),
  details: z.record(z.string(), z.unknown()),
  waitsFor: z.array(z.string()).optional(),
  needs: z.array(z.string()).optional(),
}) satisfies z.ZodType<WorkResult>

const failureSchema = z.object({
  code: z.string(),
  reason: z.string().nullable(),
  message: z.string(),
  retryable: z.boolean(),
  details: z.record(z.string(), z.unknown()),
  // The other fields are for the operator only.
  stack: z.string(),
  cause: z.object({ name: z.string(), code: z.string().optional(), message: z.string(), stack: z.string() }).nullable(),
})
/** A `StemworkError` as plain JSON. */
export type Failure = z.infer<typeof failureSchema>

const stepAnswerSchema = z.union([
  z.object({ result: stepResultSchema.optional() }),
  z.object({ failure: failureSchema }),
])
export type StepAnswer = z.infer<typeof stepAnswerSchema>

/**
 * Messages from the host to the child. `run` numbers the runs, so that a late message is not taken for the next run's.
 * `prepare` is a run without outputs.
 */
export const hostMessageSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('run'), run: z.number(), order: workOrderSchema }),
  z.object({ type: z.literal('prepare'), run: z.number(), module: z.string(), settings: z.unknown() }),
  /** The pending part of the checkpoint has been stored. */
  z.object({ type: z.literal('stored'), run: z.number() }),
  /** The run is about to end and must keep its work now. */
  z.object({ type: z.literal('handBack'), run: z.number() }),
  /** The answer to a request about a step. */
  z.object({ type: z.literal('stepAnswer'), run: z.number(), request: z.number(), answer: stepAnswerSchema }),
])
export type HostRequest = { type: 'run'; order: WorkOrder } | { type: 'prepare'; module: string; settings: unknown }
export type HostMessage = (
  | HostRequest
  | { type: 'stored' | 'handBack' }
  | { type: 'stepAnswer'; request: number; answer: StepAnswer }
) & { run: number }

/** Processor time of the run so far. */
const processorSeconds = z.number().nonnegative().default(0)

/** Messages from the child to the host. */
export const childMessageSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('ready') }),
  z.object({ type: z.literal('progress'), run: z.number(), progress: workProgressSchema, processorSeconds }),
  /**
   * A part of the checkpoint is in the order's folder; the child sends the next one after `stored`. Without a number,
   * no further part follows.
   */
  z.object({ type: z.literal('part'), run: z.number(), part: z.number().int().nonnegative().optional() }),
  /** A step to keep, or the name of a finished step whose result is requested. */
  z.object({
    type: z.literal('step'),
    run: z.number(),
    request: z.number(),
    step: z.union([keptStepSchema, z.string()]),
  }),
  /** `isLast`: the child must not get another order, because runs have left too much in its memory. */
  z.object({
    type: z.literal('done'),
    run: z.number(),
    result: workResultSchema,
    isLast: z.boolean().optional(),
    processorSeconds,
  }),
  /** `fatal`: the child ends itself and must not get another order. */
  z.object({
    type: z.literal('failed'),
    run: z.number(),
    failure: failureSchema,
    fatal: z.boolean(),
    processorSeconds,
  }),
])
export type ChildMessage = z.input<typeof childMessageSchema>

export function failureOf(error: StemworkError): Failure {
  return {
    code: error.code,
    reason: error.reason ?? null,
    message: error.message,
    retryable: error.retryable,
    details: plainDetails(error.details),
    stack: error.stack ?? '',
    cause: error.cause === undefined ? null : causeOf(error.cause),
  }
}

/** The error that `failureOf` described, with the texts of its stack and causes. */
export function errorOf(failure: Failure): StemworkError {
  const error = new StemworkError(failure.code as ErrorCode, failure.message, {
    reason: (failure.reason as FailureReason | null) ?? undefined,
    retryable: failure.retryable,
    details: failure.details,
    cause: failure.cause ? Object.assign(new Error(failure.cause.message), failure.cause) : undefined,
  })
  return Object.assign(error, { stack: failure.stack })
}

/** A cause as plain JSON; its `stack` also contains the deeper causes. */
function causeOf(cause: unknown): Failure['cause'] {
  if (!(cause instanceof Error)) return { name: 'Error', message: errorText(cause), stack: errorText(cause) }
  const { name, message } = cause
  const { code } = cause as NodeJS.ErrnoException
  return {
    // A workflow may have assigned anything to these properties.
    name: String(name),
    code: typeof code === 'string' ? code : undefined,
    message: String(message),
    stack: errorText(cause),
  }
}

function plainDetails(details: Record<string, unknown>): Record<string, unknown> {
  try {
    return JSON.parse(JSON.stringify(details))
  } catch {
    return {}
  }
}
