import type { z } from 'zod'
import type { JobRecord } from '../../core/engine/job/job.js'
import type { RequestHeaders } from '../routing/api-request.js'
import type { KeyedCall } from '../routing/call.js'
import { Problem } from '../routing/problem.js'
import type { newJobSchema } from '../schemas.js'
import { ownUploadKey } from '../storage/storage-link.js'
import { requireUpload } from '../storage/upload-refusal.js'

/** Submits a checked request body. Download links of this service's own uploads are resolved to the stored files. */
export async function createJob(call: KeyedCall, body: z.output<typeof newJobSchema>): Promise<JobRecord> {
  await call.service.storage.refuseFull(call.caller.id)
  refuseLongParams(body.params, call.service.options.limits.paramsBytes)
  const { job } = await call.service.engine.submit({
    app: call.caller.id,
    workflow: body.workflow,
    params: body.params,
    name: body.name ?? null,
    batchName: body.batchName ?? null,
    metadata: body.metadata,
    uploads: await findUploads(call, body),
    copyResultsTo: body.copyResultsTo,
    webhook: body.webhook ?? null,
    idempotencyKey: idempotencyKey(call.request.headers),
  })
  return job
}

async function findUploads(call: KeyedCall, body: z.output<typeof newJobSchema>): Promise<Record<string, string>> {
  const { engine } = call.service
  const uploads: Record<string, string> = {}
  for (const param of engine.workflows.get(body.workflow)?.inputs ?? []) {
    const url = body.params[param]
    const key = typeof url === 'string' ? ownUploadKey(url, call, call.caller.id) : undefined
    if (key === undefined) continue
    await requireUpload(engine.blobs, key, engine.options.limits.maxFileBytes)
    uploads[param] = key
  }
  return uploads
}

function refuseLongParams(params: Record<string, unknown>, maxBytes: number): void {
  const bytes = Buffer.byteLength(JSON.stringify(params))
  if (bytes <= maxBytes) return
  const message = `may have at most ${maxBytes} bytes as JSON, and these have ${bytes}`
  throw new Problem('BAD_INPUT', `The request is not valid. params: ${message}.`, {
    issues: [{ path: 'params', message }],
  })
}

function idempotencyKey(headers: RequestHeaders): string | undefined {
  const key = headers.get('idempotency-key')
  if (key === null) return undefined
  if (/^[\x21-\x7e]{1,255}$/.test(key)) return key
  throw new Problem('BAD_INPUT', 'Idempotency-Key must have 1 to 255 visible ASCII characters, for example a UUID.', {
    issues: [{ path: 'Idempotency-Key', message: 'must have 1 to 255 visible ASCII characters' }],
  })
}
