import type { JobRecord } from '../../../core/engine/job/job.js'

/**
 * A copy that shares nothing with its original. Every field is named, in one order: this runs several times a job, and records
 * of one hidden class are copied many times faster than with a spread, which makes an object of a new one from each source.
 */
export function copyRecord(job: JobRecord): JobRecord {
  return {
    id: job.id,
    app: job.app,
    name: job.name,
    workflow: job.workflow,
    params: copyPlain(job.params),
    uploads: { ...job.uploads },
    batchName: job.batchName,
    metadata: { ...job.metadata },
    copyResultsTo: { ...job.copyResultsTo },
    webhook: copyPlain(job.webhook),
    status: job.status,
    progress: job.progress,
    stage: job.stage,
    outputs: copyPlain(job.outputs),
    details: copyPlain(job.details),
    error: copyPlain(job.error),
    createdAt: job.createdAt,
    startedAt: job.startedAt,
    completedAt: job.completedAt,
    expiresAt: job.expiresAt,
    expired: job.expired,
    lease: copyPlain(job.lease),
    token: job.token,
    attempts: job.attempts,
    shutdownRequeues: job.shutdownRequeues,
    notBefore: job.notBefore,
    cancelRequested: job.cancelRequested,
    deleted: job.deleted,
    idempotency: copyPlain(job.idempotency),
    deliveries: copyPlain(job.deliveries),
  }
}

/** A deep copy of plain data; anything else becomes what it is in JSON, as in a store that writes to disk. */
export function copyPlain<Value>(value: Value): Value {
  return copy(value) as Value
}

function copy(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(copy)
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return JSON.parse(JSON.stringify(value))
  const result: Record<string, unknown> = { ...value }
  for (const key in result) {
    const inner = result[key]
    if (typeof inner === 'object' && inner !== null) result[key] = copy(inner)
  }
  return result
}
