import type { z } from 'zod'
import type { JobRecord } from '../../core/engine/job/job.js'
import type { RequestHeaders } from '../routing/api-request.js'
import type { KeyedCall } from '../routing/call.js'
import { invalidField, Problem, type ProblemCode } from '../routing/problem.js'
import type { newJobSchema } from '../schemas.js'
import { type OwnUpload, ownUpload } from '../storage/storage-link.js'
import { isRemoved, removedUpload, requireUpload } from '../storage/upload-refusal.js'

/** Why a route may refuse new jobs. */
export const newJobProblems: readonly ProblemCode[] = [
  'UPLOAD_REFUSED',
  'IDEMPOTENCY_CONFLICT',
  'QUEUE_FULL',
  'QUOTA_EXCEEDED',
  'STORAGE_FULL',
  'WORKFLOW_UNAVAILABLE',
  'DRAINING',
  'SHUTTING_DOWN',
]

/** Submits a checked request body. Download links of this service's own uploads are resolved to the stored files. */
export async function createJob(call: KeyedCall, body: z.output<typeof newJobSchema>): Promise<JobRecord> {
  const { engine, storage } = call.service
  const { fields, uploads } = jobFields(call, body)
  const { job, created } = await engine.submit(
    {
      app: call.caller.id,
      ...fields,
      batchName: body.batchName ?? null,
      idempotencyKey: idempotencyKey(call.request.headers),
    },
    {
      trace: call.trace,
      // Skipped for a repeated request: its job's files may be gone by now, and the storage may be full.
      async beforeCreate() {
        await Promise.all([
          call.requireAllowed(),
          storage.refuseFull(call.caller.id).then(() => requireUploads(call, uploads)),
        ])
      },
    },
  )
  if (created) await refuseRemoved(call, job, uploads)
  return job
}

/** Takes a new job back if an upload of it was being removed with another job when it was created. */
async function refuseRemoved({ service }: KeyedCall, { id, app }: JobRecord, uploads: InputUpload[]): Promise<void> {
  const { engine } = service
  for (const { key } of uploads) {
    // The job exists: a blob store that fails now is not a reason to refuse it.
    if (!(await isRemoved(engine.blobs, key).catch(() => false))) continue
    await engine.delete(id, { app })
    throw removedUpload()
  }
}

type NewJob = Omit<z.output<typeof newJobSchema>, 'batchName'>
type InputUpload = OwnUpload & { param: string }

/** The submission for a checked body, and its uploads. @param path prefix for the paths of its fields, for errors */
export function jobFields(call: KeyedCall, body: NewJob, path = '') {
  refuseLongParams(body.params, call.service.options.limits.paramsBytes, path)
  const uploads = findUploads(call, body)
  const fields = {
    workflow: body.workflow,
    params: body.params,
    name: body.name ?? null,
    metadata: body.metadata,
    uploads: Object.fromEntries(uploads.map(({ param, key }) => [param, key])),
    copyResultsTo: body.copyResultsTo,
    webhook: body.webhook ?? null,
    priority: body.priority,
    notBefore: milliseconds(body.notBefore),
    deadline: milliseconds(body.deadline),
  }
  return { fields, uploads }
}

export async function requireUploads(call: KeyedCall, uploads: readonly InputUpload[]): Promise<void> {
  const { blobs, options } = call.service.engine
  for (const upload of uploads) await requireUpload(blobs, upload, options.limits.maxFileBytes)
}

/** Omitted if not given, so that such requests equal those of clients that do not know the field. */
function milliseconds(time: string | null | undefined): number | undefined {
  return time === null || time === undefined ? undefined : Date.parse(time)
}

function findUploads(call: KeyedCall, body: NewJob): InputUpload[] {
  const inputs = call.service.engine.workflows.get(body.workflow)?.inputs ?? []
  return inputs.flatMap((param) => {
    const url = body.params[param]
    const upload = typeof url === 'string' ? ownUpload(url, call, call.caller.id) : undefined
    return upload ? [{ ...upload, param }] : []
  })
}

function refuseLongParams(params: Record<string, unknown>, maxBytes: number, path: string): void {
  const bytes = Buffer.byteLength(JSON.stringify(params))
  if (bytes <= maxBytes) return
  throw invalidField(`${path}params`, `may have at most ${maxBytes} bytes as JSON, but has ${bytes}`)
}

/** Describes the header in the OpenAPI document. */
export function idempotencyHeader(what: string) {
  const schema = { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' }
  return { description: `A repeated request with the same key and body creates no second ${what}.`, schema }
}

export function idempotencyKey(headers: RequestHeaders): string | undefined {
  const key = headers.get('idempotency-key')
  if (key === null) return undefined
  if (/^[\x21-\x7e]{1,255}$/.test(key)) return key
  throw new Problem('BAD_INPUT', 'Idempotency-Key must have 1 to 255 visible ASCII characters, for example a UUID.', {
    issues: [{ path: 'Idempotency-Key', message: 'must have 1 to 255 visible ASCII characters' }],
  })
}
