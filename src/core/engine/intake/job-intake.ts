import { type AdmissionLimits, admissionOf, type AdmissionParts } from './admission.js'
import { isOfBatch } from '../batch/batch.js'
import type { Turn } from '../limits/rested.js'
import type { Batches } from '../batch/batches.js'
import { batchRequest, checkBatch, jobsOfBatch, repeatedIds, type SubmitBatchInput } from './submit-batch.js'
import { shuttingDown, StemworkError } from '../errors.js'
import type { Waking } from '../dispatch/waking.js'
import type { JobRecord } from '../job/job.js'
import { newJob } from '../job/new-job.js'
import { inputExpired, notFailed } from '../job/retry.js'
import { jobAttributes } from '../job/span-attributes.js'
import { maxEventCharacters, stepNameSchema } from '../job/step.js'
import type { TraceContext } from '../job/trace-context.js'
import { jobInScope, type JobScope } from '../queries/job-scope.js'
import type { deploymentLimits } from '../limits/limits.js'
import { withLocalFiles } from './local-file.js'
import { traced, type Tracing } from '../ports/tracing.js'
import type { Readiness } from '../runner/readiness.js'
import type { RememberedRules } from '../limits/scheduling-rules.js'
import {
  checkSubmission,
  checkSubmitInput,
  idempotencyOf,
  jobRequest,
  requireSameRequest,
  type SubmitOptions,
} from './submission.js'
import type { SharedParts } from '../engine-parts.js'

interface IntakeParts extends AdmissionParts, Pick<SharedParts, 'blobs' | 'events' | 'logger'> {
  waking: Waking
  rules: RememberedRules
  batches: Batches
  deploymentLimits: ReturnType<typeof deploymentLimits>
  readiness: Readiness
  /** Fires when no more jobs are accepted. */
  closing: AbortSignal
}

/** Queues jobs: new ones, those of a batch, and failed ones that are retried. */
export function jobIntake(parts: IntakeParts) {
  const { jobs, clock, blobs, events, rules, waking, workflows, batches, logger } = parts
  const { deploymentLimits, readiness, closing, options: settings } = parts
  return { submit, submitBatch, retry, sendEvent }

  async function submit(given: unknown, options: SubmitOptions): Promise<{ job: JobRecord; created: boolean }> {
    refuseClosing()
    const input = checkSubmitInput(given)
    const idempotency = idempotencyOf(input)
    const first = idempotency && (await jobs.findByIdempotencyKey(input.app, idempotency.key))
    if (first) return { job: requireSameRequest(first, idempotency), created: false }
    const workflow = workflows.idOf(input.workflow)
    await rules.refuseDraining({ app: input.app, workflow })
    // Skipped in an open transaction of the host, because the store may have only one connection.
    if (options.tx === undefined) await deploymentLimits()
    const asksTime = typeof input.deadline === 'number' && options.tx === undefined
    const now = asksTime ? await clock.time() : Date.now()
    const complete = checkSubmission(input, workflows.require(workflow), now)
    refuseUnavailable(workflow)
    const [{ limits, fieldsOf }] = await Promise.all([admissionOf(input.app, parts), options.beforeCreate?.()])
    const { webhook, ...fields } = fieldsOf(complete)

    const { job, created } = await withLocalFiles(complete, blobs, settings.limits.maxFileBytes, (ready) =>
      inSubmitSpan(
        settings.tracing,
        newJob({ ...jobRequest(ready, webhook, idempotency), ...fields }),
        options.trace,
        (made) => jobs.create(made, { tx: options.tx, ...limits }),
      ),
    )
    if (!created) return { job: requireSameRequest(job, idempotency), created }
    events.announce('job.created', { job })
    // A job inside an open transaction cannot be claimed yet; the sweep finds it after the commit.
    const delayMs = options.tx === undefined ? 0 : 500
    await waking.wake([job], { delayMs })
    return { job, created }
  }

  async function submitBatch(
    given: SubmitBatchInput,
    options: Pick<SubmitOptions, 'beforeCreate' | 'trace'> & { turn?: Turn },
  ): Promise<{ name: string; ids: string[]; created: boolean }> {
    refuseClosing()
    const request = batchRequest(given)
    if (await batches.has(given.app, request)) return { name: request.name, ids: repeatedIds(given), created: false }
    const batch = await checkBatch(given, request, workflows, await clock.time(), options.turn)
    for (const workflow of new Set(batch.jobs.map((job) => workflows.idOf(job.workflow)))) {
      await rules.refuseDraining({ app: batch.app, workflow })
      refuseUnavailable(workflow)
    }
    await deploymentLimits()
    const { limits, fieldsOf } = await admissionOf(batch.app, parts)
    const jobs = await jobsOfBatch(batch, fieldsOf, options.turn)
    await options.beforeCreate?.()
    const created = await batches.add({ ...batch, jobs }, { ...limits, trace: options.trace })
    if (created) {
      for (const job of created) events.announce('job.created', { job })
      await waking.wake(created)
    }
    return { name: batch.name, ids: jobs.map(({ id }) => id), created: created !== undefined }
  }

  async function retry(id: string, scope: JobScope): Promise<JobRecord | undefined> {
    refuseClosing()
    const known = await jobInScope(jobs, id, scope)
    if (!known) return undefined
    await rules.refuseDraining(known)
    const { limits } = await admissionOf(known.app, parts)
    const job = await queueAgain(known, limits)
    if (!job) return undefined
    if (isOfBatch(job))
      await batches
        .reopen(job)
        .catch((error: unknown) => logger.warn({ jobId: id, err: error }, 'The batch of a job was not opened again.'))
    events.announce('job.requeued', { job })
    await waking.wake([job])
    return job
  }

  async function sendEvent(event: StepEvent, scope: JobScope): Promise<JobRecord | undefined> {
    const { id, name, value } = checkEvent(event)
    if (!(await jobInScope(jobs, id, scope))) return undefined
    const job = await jobs.apply(id, { kind: 'event', name, value })
    if (job?.status === 'QUEUED') await waking.wake([job])
    return job
  }

  /** @returns `undefined` if the job no longer exists */
  async function queueAgain(job: JobRecord, limits: AdmissionLimits): Promise<JobRecord | undefined> {
    if (job.status === 'FAILED') {
      // Uploads should exist until they expire; checked anyway, so that no job is queued only to fail at once.
      for (const key of Object.values(job.uploads)) if (!(await blobs.stat(key))) throw inputExpired(job)
    }
    const queued = await jobs.apply(job.id, { kind: 'retry', ...limits })
    if (queued) return queued
    const now = await jobs.get(job.id)
    if (now) throw notFailed(now)
    return undefined
  }

  /** Refuses a workflow that cannot run, unless other processes run jobs, too: they may have the missing parts. */
  function refuseUnavailable(workflow: string): void {
    if (jobs.traits.scope === 'process') readiness.requireRunnable(workflow)
  }

  function refuseClosing(): void {
    if (closing.aborted) throw shuttingDown()
  }
}

/** Stores a new job in a span, the parent of its attempts and webhook messages. */
function inSubmitSpan<Result>(
  tracing: Tracing,
  job: JobRecord,
  parent: TraceContext | undefined,
  store: (job: JobRecord) => Promise<Result>,
): Promise<Result> {
  const attributes = {
    ...jobAttributes(job),
    'messaging.operation.name': 'submit',
    'messaging.operation.type': 'send',
  }
  return traced(tracing, { name: `submit ${job.workflow}`, kind: 'producer', parent, attributes }, (span) =>
    store({ ...job, trace: span.context ?? null }),
  )
}

export interface StepEvent {
  id: string
  /** Name of the step that waits for the event. */
  name: string
  value: unknown
}

/** @throws StemworkError `INVALID_PARAMS` for a name that no step can have, or a value that is not JSON or too long */
function checkEvent({ id, name, value }: StepEvent): StepEvent {
  if (!stepNameSchema.safeParse(name).success)
    throw new StemworkError('INVALID_PARAMS', `No step has the name ${JSON.stringify(name)}. Name the one that waits.`)
  const json = jsonOf(value)
  if (json === undefined || json.length > maxEventCharacters)
    throw new StemworkError(
      'INVALID_PARAMS',
      `The event ${name} is not JSON, or longer than ${maxEventCharacters} characters. Send a reference to more.`,
    )
  return { id, name, value: JSON.parse(json) }
}

function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    return undefined
  }
}
