import type { z } from 'zod'
import type { JobRecord } from '../../core/engine/job/job.js'
import type { RequestHeaders } from '../routing/api-request.js'
import type { KeyedCall } from '../routing/call.js'
import { Problem } from '../routing/problem.js'
import type { newJobSchema } from '../schemas.js'
import { type OwnUpload, ownUpload } from '../storage/storage-link.js'
import { requireUpload } from '../storage/upload-refusal.js'

/** Submits a checked request body. Download links of this service's own uploads are resolved to the stored files. */
export async function createJob(call: KeyedCall, body: z.output<typeof newJobSchema>): Promise<JobRecord> {
  const { engine, options, storage } = call.service
  refuseLongParams(body.params, options.limits.paramsBytes)
  const uploads = findUploads(call, body)
  const { job } = await engine.submit(
    {
      app: call.caller.id,
      workflow: body.workflow,
      params: body.params,
      name: body.name ?? null,
      batchName: body.batchName ?? null,
      metadata: body.metadata,
      uploads: Object.fromEntries(uploads.map(({ param, key }) => [param, key])),
      copyResultsTo: body.copyResultsTo,
      webhook: body.webhook ?? null,
      priority: body.priority,
      notBefore: milliseconds(body.notBefore),
      deadline: milliseconds(body.deadline),
      idempotencyKey: idempotencyKey(call.request.headers),
    },
    {
      trace: call.trace,
      // Not for a repeated request: the files of its job may be gone by now, and the storage may have filled up.
      async beforeCreate() {
        await storage.refuseFull(call.caller.id)
        for (const upload of uploads) await requireUpload(engine.blobs, upload, engine.options.limits.maxFileBytes)
      },
    },
  )
  return job
}

/** Left out where it was not given, so that such requests are the same as those of clients that do not know the field. */
function milliseconds(time: string | null | undefined): number | undefined {
  return time === null || time === undefined ? undefined : Date.parse(time)
}

function findUploads(call: KeyedCall, body: z.output<typeof newJobSchema>): (OwnUpload & { param: string })[] {
  const inputs = call.service.engine.workflows.get(body.workflow)?.inputs ?? []
  return inputs.flatMap((param) => {
    const url = body.params[param]
    const upload = typeof url === 'string' ? ownUpload(url, call, call.caller.id) : undefined
    return upload ? [{ ...upload, param }] : []
  })
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
