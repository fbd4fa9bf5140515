/** What the operator's page is sent. Times are epoch milliseconds. */
export interface Overview {
  at: number
  queues: QueueFacts[]
  workers: WorkerFacts[]
  /** Jobs that ended in the last hour, by the time in which they did, the earliest first. */
  rates: { from: number; succeeded: number; failed: number }[]
  failures: FailureFacts[]
  /** What is paused, drained or limited. */
  rules: { kind: 'deployment' | 'application' | 'workflow'; id: string; state: RuleState; maxRunning: number | null }[]
  applications: { id: string; name: string }[]
  /** Rates and failures are those of so many of the newest jobs, and `complete` says whether these are all of the last day. */
  sample: { jobs: number; complete: boolean }
  problems: string[]
  warnings: string[]
}

export type RuleState = 'open' | 'paused' | 'draining'

export interface QueueFacts {
  /** Empty for jobs of workflows that this node does not have. */
  workflow: string
  name: string
  queued: number
  running: number
  /** Whether there are more than `queued`, which is where the count ends. */
  isMore: boolean
  /** Since when the job waits that has waited longest; null if none waits. Where `isMore`, another may have waited longer. */
  oldestSince: number | null
  /** Of those that succeeded of late, from claim to end. */
  medianMs: number | null
}

export interface WorkerFacts {
  name: string
  /** Its last sign of life. */
  seenAt: number
  jobs: { id: string; workflow: string; stage: string | null; progress: number; startedAt: number }[]
}

export interface FailureFacts {
  code: string
  reason: string | null
  title: string
  jobs: number
  /** The last of them. */
  last: { id: string; at: number; message: string }
}

export interface JobRow {
  id: string
  name: string | null
  app: string
  workflow: string
  batchName: string | null
  status: 'QUEUED' | 'STARTED' | 'SUCCEEDED' | 'FAILED'
  stage: string | null
  progress: number
  createdAt: number
  startedAt: number | null
  completedAt: number | null
  /** Claims so far. */
  attempts: number
  worker: string | null
  error: { code: string; title: string; message: string; reason: string | null; retryable: boolean } | null
}

export interface JobPage {
  jobs: JobRow[]
  /** Cursor of the next page. */
  next: string | null
  /** How many jobs were looked at for a text that no index has; null if the store found them itself. */
  looked: number | null
}

export interface JobFacts extends JobRow {
  params: Record<string, unknown>
  metadata: Record<string, string>
  priority: number
  notBefore: number | null
  deadline: number | null
  expiresAt: number | null
  cancelRequested: boolean
  /** Place in the queue of its application. */
  place: number | null
  history: AttemptFacts[]
  /** Why the last attempt failed, with stack and causes. */
  failure: string | null
  webhooks: {
    event: string
    url: string
    outcome: string
    attempts: number
    status: number | null
    nextAt: number | null
  }[]
  outputs: { name: string; fileName: string; bytes: number }[]
  traceId: string | null
}

export interface AttemptFacts {
  token: number
  worker: string
  startedAt: number
  endedAt: number | null
  outcome: 'running' | 'succeeded' | 'failed' | 'requeued' | 'handed_back' | 'lapsed'
  reason: string | null
}
