import type { ApplicationLimits, BulkReport, PoolStatus, Worker } from '../../core/engine/engine.js'
import type { PastAttempt } from '../../core/engine/job/history.js'
import type { JobRecord } from '../../core/engine/job/job.js'
import type { Limits } from '../../core/engine/job/quota.js'
import type { SchedulingRule } from '../../core/engine/job/scheduling.js'
import type { StepState } from '../../core/engine/ports/runner.js'

/** Responses for the operator's page. Times are epoch milliseconds. */
export interface Overview {
  at: number
  queues: QueueFacts[]
  workers: WorkerFacts[]
  /** Whether the store keeps a ledger to count ended jobs from; without it, `rates` and `failures` are empty. */
  isCounted: boolean
  /** Jobs that ended in the last hour, by interval, earliest first. */
  rates: { from: number; succeeded: number; failed: number }[]
  /** Failures of the last day. */
  failures: FailureFacts[]
  /** Everything that is paused, drained or limited. */
  rules: { kind: 'deployment' | 'application' | 'workflow'; id: string; state: RuleState; maxRunning: number | null }[]
  applications: { id: string; name: string }[]
  /** Usage by jobs that ended this month (UTC), most processor time first; empty where the store keeps no ledger. */
  usage: UsageFacts[]
  problems: string[]
  warnings: string[]
}

export interface UsageFacts {
  app: string
  jobs: number
  failed: number
  audioSeconds: number
  processorSeconds: number
}

export type LimitFacts = ApplicationLimits
export type LimitFigures = Limits
export type AttemptFacts = PastAttempt
export type WorkerState = Worker['state']
export type RuleState = SchedulingRule['state']

/** Jobs of one workflow that need the same labels. */
export interface QueueFacts extends Pick<
  PoolStatus,
  'workflow' | 'needs' | 'queued' | 'running' | 'workers' | 'slots'
> {
  /** Null for a workflow that this node does not have. */
  name: string | null
  /** Whether more jobs wait than `queued`, where counting stops. */
  isMore: boolean
  /** How long the first waiting job has been due; null if none waits. */
  longestWaitMs: number | null
  /** Median time of the last day's successful jobs, from claim to end. */
  medianMs: number | null
}

export interface WorkerFacts {
  name: string
  /** Null for a worker known only from its jobs: it ended, runs single jobs, or is an older version. */
  offers: Pick<Worker, 'state' | 'slots' | 'labels' | 'workflows' | 'startedAt'> | null
  /** When it was last seen. */
  seenAt: number
  jobs: { id: string; workflow: string; stage: string | null; progress: number; startedAt: number }[]
}

export interface FailureFacts {
  code: string
  reason: string | null
  title: string
  jobs: number
  /** The latest failure. */
  last: { id: string; at: number; message: string }
}

export interface JobRow
  extends
    Pick<JobRecord, 'id' | 'name' | 'app' | 'workflow' | 'batchName' | 'status' | 'stage' | 'progress' | 'error'>,
    Pick<JobRecord, 'createdAt' | 'startedAt' | 'completedAt'> {
  /** Claims so far. */
  attempts: number
  worker: string | null
}

/** The outcome of one bulk request. */
export interface BulkFacts extends Omit<BulkReport, 'next'> {
  /** Cursor to continue from; null at the end. */
  next: string | null
}

export interface JobPage {
  jobs: JobRow[]
  /** Cursor of the next page. */
  next: string | null
  /** How many failed jobs were searched for a text of their errors, which no index has; null without such a text. */
  looked: number | null
}

export interface JobFacts
  extends JobRow, Pick<JobRecord, 'params' | 'metadata' | 'priority' | 'deadline' | 'expiresAt' | 'cancelRequested'> {
  notBefore: number | null
  /** Position in the queue of its application. */
  queuePosition: number | null
  /** Why the job does not start, besides the jobs before it. */
  waiting: { reason: 'scheduled' | 'retrying' | 'paused' | 'no_worker' | 'preempted'; message: string } | null
  /** Labels that its worker must have. */
  needs: string[]
  history: AttemptFacts[]
  steps: StepFacts[]
  /** Why the last attempt failed, with stack and causes. */
  failure: string | null
  webhooks: (Pick<JobRecord['deliveries'][number], 'event' | 'url' | 'outcome' | 'attempts'> & {
    status: number | null
  })[]
  outputs: { name: string; fileName: string; bytes: number }[]
  traceId: string | null
}

export interface StepFacts extends Omit<StepState, 'version'> {
  files: { name: string; bytes: number }[]
}
