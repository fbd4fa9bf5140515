import { ClientError } from './client-error.js'
import type { AnyOffer, Offer } from './offer.js'

export type JobStatus = 'QUEUED' | 'STARTED' | 'SUCCEEDED' | 'FAILED'

export interface WorkflowSummary<Id extends string = string> {
  id: Id
  name: string
  description: string
  /** If this is an alias: the id of its workflow. */
  aliasOf?: string
}

/** A workflow with the schema of its jobs' `params`. */
export interface Workflow extends WorkflowSummary {
  /** JSON Schema; empty if the workflow checks them by rules that JSON Schema cannot express. */
  params: Record<string, unknown>
  /** Larger or longer inputs are refused. */
  limits: { maxFileBytes: number; maxAudioSeconds: number }
  /** Names of the events that its jobs wait for and `sendEvent` may send. */
  events?: string[]
}

/** Why a job ended FAILED. */
export interface JobError {
  code: 'BAD_INPUT' | 'TIMEOUT' | 'INTERNAL_ERROR' | 'CANCELED'
  title: string
  message: string
  /** Machine-readable cause within the code, for example `unsupported_format`. */
  reason: string | null
  /** Whether the same job may succeed when it is created again. */
  retryable: boolean
}

export interface JobFile {
  /** A name to save the file under, for example `My song - vocals.wav`. */
  fileName: string
  contentType: string
  bytes: number
}

/** The results of jobs as one ZIP file. */
export interface Archive {
  url: string
  fileName: string
  bytes: number
  /** Number of jobs with results in it. */
  jobs: number
}

/**
 * Peaks of an audio file in the format of audiowaveform: `data` alternates the lowest and the highest value of each
 * stretch.
 */
export interface Peaks {
  sample_rate: number
  /** Samples of a stretch. */
  samples_per_pixel: number
  bits: number
  /** Number of stretches. */
  length: number
  data: number[]
}

/** A step of a job. */
export interface JobStep {
  name: string
  state: 'done' | 'failed' | 'waiting'
  /** When its last attempt began. */
  startedAt: string
  endedAt: string | null
  /** Number of attempts. */
  attempts: number
  /** Why its last attempt failed. */
  error: { code: string; message: string } | null
  /** Its files with their sizes in bytes. */
  files: Record<string, number>
}

/** A job as the service shows it. Times are ISO 8601 texts in UTC. */
export interface Job<Offered extends AnyOffer = Offer> {
  id: string
  name: string | null
  status: JobStatus
  workflow: WorkflowSummary<Offered['id']>
  workflowParams: Offered['params']
  /**
   * Output name to download link, once the job has SUCCEEDED. Links expire; each request for the job returns fresh
   * ones.
   */
  result: Offered['result'] | null
  /** Facts about the files behind the links, by output name; absent in answers of services before version 0.2. */
  files?: Record<string, JobFile> | null
  /**
   * How the result was made, as reported by the workflow, for example the model's name and hash; null until SUCCEEDED.
   */
  details: Record<string, unknown> | null
  error: JobError | null
  /** State of the workflow's steps; absent if it has none. */
  steps?: JobStep[]
  createdAt: string
  /** When its first attempt started. */
  startedAt: string | null
  completedAt: string | null
  /** Number of the current or last attempt; 0 before the first. */
  attempt?: number
  /** Maximum number of attempts: after as many temporary failures, the job ends FAILED. */
  attempts?: number
  /** When the next attempt is due, if the last one failed and another follows. */
  retryAt?: string | null
  app: string
  batchName: string | null
  metadata: Record<string, string>
  /** 0..1 */
  progress: number
  stage: string | null
  /** When the result files are removed; null until the job has ended. */
  expiresAt: string | null
  /** From -2 to 2; higher starts first. */
  priority?: number
  /** As submitted: the job does not start before this time. */
  notBefore?: string | null
  deadline?: string | null
  /**
   * Position of a waiting job among the application's own jobs: 1 is next, 1001 means beyond 1000. Only from `getJob`
   * and in events.
   */
  queuePosition?: number | null
  /**
   * Probable start (null once the job has begun) and end of the job; null where too little was measured. Only from
   * `getJob` and in events.
   */
  estimate?: { startsAt: string | null; endsAt: string } | null
  /** Why a waiting job has not started, other than jobs ahead of it. Only from `getJob` and in events. */
  waiting?: { reason: 'scheduled' | 'retrying' | 'paused' | 'no_worker' | 'preempted'; message: string } | null
}

/** Status of a job, as a status request returns it. */
export type JobProgress = Pick<Job, 'id' | 'status' | 'progress' | 'stage'> &
  Partial<Pick<Job, 'queuePosition' | 'estimate' | 'waiting'>>

export interface NewJob {
  workflow: string
  params: Record<string, unknown>
  /** Shown in lists, searched, and part of the names of downloads. */
  name?: string | null
  /** Jobs with the same batch name belong together. */
  batchName?: string | null
  /** Your own labels, which the service returns but does not interpret. */
  metadata?: Record<string, string>
  /** Output name to a PUT URL in your own storage, to which the result is copied. */
  copyResultsTo?: Record<string, string>
  /** Where to send a signed message at each of the `events`. Default: `job.succeeded` and `job.failed`. */
  webhook?: { url: string; events?: string[] | null } | null
  /** Among the application's own jobs: from -2 (last) to 2 (first). Default: 0. */
  priority?: number
  /** The job does not start before this time, in ISO 8601. */
  notBefore?: string | null
  /** A job that has not ended by this time ends FAILED with the reason `deadline`. */
  deadline?: string | null
}

/** A new job of a client that knows the engine's type. */
export type NewJobOf<Offered extends AnyOffer> = Omit<NewJob, 'workflow' | 'params' | 'copyResultsTo'> & {
  workflow: Offered['id']
  params: Offered['params']
  /** Output name to a PUT URL in your own storage. */
  copyResultsTo?: { [Name in keyof Offered['result']]?: string }
}

export interface JobPage<Offered extends AnyOffer = Offer> {
  /** Newest first. */
  jobs: Job<Offered>[]
  /** Jobs that pass the filters, on all pages. */
  total: number
  /** Cursor of the next page; undefined on the last one. */
  next: string | undefined
}

/** @throws ClientError for an id that would lead to another path */
export function jobPath(id: string): string {
  return `/job/${segment(id, 'job with the id')}`
}

/**
 * Encodes a path segment. Dots would change the path: a DELETE of a job's link `..` would delete the job.
 *
 * @throws ClientError `NOT_FOUND`
 */
export function segment(id: string, what: string): string {
  if (!/^\.{0,2}$/.test(id)) return encodeURIComponent(id)
  throw new ClientError(`There is no ${what} "${id}".`, { code: 'NOT_FOUND', status: 404 })
}

export function hasEnded(job: Pick<Job, 'status'>): boolean {
  return job.status === 'SUCCEEDED' || job.status === 'FAILED'
}
