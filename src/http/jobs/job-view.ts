import { retryAt } from '../../core/engine/job/due-times.js'
import { isTerminal, type JobOutput, type JobRecord } from '../../core/engine/job/job.js'
import type { StepRecord } from '../../core/engine/job/step.js'
import type { Call } from '../routing/call.js'
import type { JobView } from '../schemas.js'
import { downloadName } from '../storage/download-name.js'
import { storageLink } from '../storage/storage-link.js'

/** Shown for an output that was sent to the client's own storage. */
export const customStorage = '[custom storage]'

/** A job as clients see it. Every field is always present; result links are fresh each time. */
export async function jobView(job: JobRecord, call: Call): Promise<JobView> {
  const view: JobView = {
    id: job.id,
    name: job.name,
    status: job.status,
    workflow: workflowSummary(job, call),
    workflowParams: job.params,
    result: job.status === 'SUCCEEDED' ? await resultLinks(job, call) : null,
    files: job.status === 'SUCCEEDED' ? fileFacts(job) : null,
    details: job.status === 'SUCCEEDED' ? job.details : null,
    error: job.error,
    ...(job.steps.length > 0 ? { steps: job.steps.map(stepView) } : {}),
    createdAt: timestamp(job.createdAt),
    startedAt: timeOrNull(job.startedAt),
    completedAt: timeOrNull(job.completedAt),
    attempt: job.attempts,
    attempts: call.service.engine.maxAttempts(job),
    retryAt: timeOrNull(retryAt(job)),
    app: job.app,
    batchName: job.batchName,
    metadata: job.metadata,
    progress: job.progress,
    stage: job.stage,
    expiresAt: timeOrNull(job.expiresAt),
    priority: job.priority,
    notBefore: job.notBefore === 0 ? null : timestamp(job.notBefore),
    deadline: timeOrNull(job.deadline),
    queuePosition: null,
    estimate: null,
    waiting: null,
  }
  // The holder of a link sees the results, but neither the input nor the owner's labels.
  return call.caller?.link ? { ...view, workflowParams: {}, metadata: {}, batchName: null, steps: undefined } : view
}

/** Like `jobView`, with details for clients that wait for the job. */
export async function pendingJobView(job: JobRecord, call: Call): Promise<JobView> {
  const view = await jobView(job, call)
  if (isTerminal(job)) return view
  const { engine } = call.service
  const isQueued = job.status === 'QUEUED'
  const [queuePosition, estimate, waiting] = await Promise.all([
    isQueued ? engine.queuePosition(job.id) : undefined,
    engine.estimate(job),
    isQueued ? engine.waiting(job) : undefined,
  ])
  const startsAt = estimate?.startsAt ?? null
  return {
    ...view,
    queuePosition: queuePosition ?? null,
    waiting: waiting ?? null,
    estimate: estimate
      ? { startsAt: startsAt === null ? null : timestamp(startsAt), endsAt: timestamp(estimate.endsAt) }
      : null,
  }
}

async function resultLinks(job: JobRecord, call: Call): Promise<Record<string, string>> {
  const links: Record<string, string> = {}
  for (const [name, output] of Object.entries(job.outputs ?? {})) links[name] = await resultLink(output, job, call)
  return links
}

async function resultLink(output: JobOutput, job: JobRecord, call: Call): Promise<string> {
  const { key, contentType, copied } = output
  if (copied) return customStorage
  const { engine, options } = call.service
  const fileName = downloadName(job, output)
  const link = call.caller?.link
  const linkSeconds = link ? Math.ceil((link.expiresAt - Date.now()) / 1000) : Infinity
  const seconds = Math.min(options.links.resultSeconds, linkSeconds)
  const direct = options.directStorage
    ? await engine.blobs.signGet?.(key, { expiresInSeconds: seconds, fileName, contentType })
    : undefined
  return direct ?? storageLink(call, { method: 'GET', key, app: job.app, keyId: link?.id, seconds, fileName })
}

function fileFacts(job: JobRecord): NonNullable<JobView['files']> {
  return Object.fromEntries(
    Object.entries(job.outputs ?? {}).map(([name, output]) => [
      name,
      { fileName: downloadName(job, output), contentType: output.contentType, bytes: output.bytes },
    ]),
  )
}

function stepView({ name, state, startedAt, endedAt, attempts, error, files }: StepRecord) {
  return {
    name,
    state,
    startedAt: timestamp(startedAt),
    endedAt: timeOrNull(endedAt),
    attempts,
    error,
    files: Object.fromEntries(Object.entries(files).map(([file, { bytes }]) => [file, bytes])),
  }
}

/** A workflow that the host no longer offers keeps its id as its name. */
function workflowSummary(job: JobRecord, call: Call): JobView['workflow'] {
  const workflow = call.service.engine.workflows.get(job.workflow)
  const id = job.alias ?? job.workflow
  return { id, name: workflow?.name ?? id, description: workflow?.description ?? '' }
}

export function timeOrNull(milliseconds: number | null): string | null {
  return milliseconds === null ? null : timestamp(milliseconds)
}

export function timestamp(milliseconds: number): string {
  return new Date(milliseconds).toISOString()
}
