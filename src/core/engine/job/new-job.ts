import { randomUUID } from 'node:crypto'
import type { JobRecord } from './job.js'

/** The fields of a job that its submit determines. */
export type JobRequest = Pick<
  JobRecord,
  | 'app'
  | 'name'
  | 'workflow'
  | 'params'
  | 'uploads'
  | 'batchName'
  | 'metadata'
  | 'copyResultsTo'
  | 'webhook'
  | 'idempotency'
> &
  Partial<Pick<JobRecord, 'alias' | 'priority' | 'notBefore' | 'deadline' | 'pool' | 'metered' | 'trace'>>

/** A queued job with a new ID; the store sets `createdAt`. */
export function newJob(request: JobRequest): JobRecord {
  return {
    id: randomUUID(),
    app: request.app,
    name: request.name,
    workflow: request.workflow,
    alias: request.alias ?? null,
    params: request.params,
    uploads: request.uploads,
    batchName: request.batchName,
    metadata: request.metadata,
    copyResultsTo: request.copyResultsTo,
    webhook: request.webhook,
    status: 'QUEUED',
    progress: 0,
    keptProgress: 0,
    stage: null,
    outputs: null,
    details: {},
    error: null,
    failure: null,
    createdAt: 0,
    startedAt: null,
    completedAt: null,
    expiresAt: null,
    expired: false,
    lease: null,
    token: 0,
    attempts: 0,
    lapses: 0,
    processorSeconds: 0,
    shutdownRequeues: 0,
    steps: [],
    history: [],
    retries: 0,
    notBefore: request.notBefore ?? 0,
    dueAt: null,
    deadline: request.deadline ?? null,
    pool: request.pool ?? '',
    metered: request.metered ?? false,
    priority: request.priority ?? 0,
    cancelRequested: false,
    deleted: false,
    settlement: null,
    idempotency: request.idempotency,
    deliveries: [],
    trace: request.trace ?? null,
  }
}
