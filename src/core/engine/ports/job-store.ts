import type { JobRecord, JobStatus } from '../job/job.js'
import type { Quota, Usage } from '../job/quota.js'
import type { RuleChange, RuleTarget, SchedulingRule } from '../job/scheduling.js'
import type { ClaimRequest, JobChange } from '../job/transitions.js'
import type { DocumentStore } from './document-store.js'

/** Which jobs a list shows: those that match every given field. Deleted jobs are never shown. */
export interface JobQuery {
  app?: string
  /** Any of these; an empty list matches no job. */
  statuses?: readonly JobStatus[]
  /** Any of these; an empty list matches no job. */
  workflows?: readonly string[]
  batchName?: string
  /** Epoch milliseconds, inclusive. */
  createdAfter?: number
  /** Epoch milliseconds, exclusive. */
  createdBefore?: number
  /** Jobs of which an input is this blob key. */
  uploadKey?: string
}

export interface JobPage extends JobQuery {
  /** Rows wanted at most. */
  limit: number
  /** Rows to skip. Default: 0. */
  offset?: number
  /** Only jobs that come after this place in the order of the list; a stable cursor, also when that job is gone. */
  after?: { createdAt: number; id: string }
}

export interface CreateOptions {
  /**
   * A transaction of the host in the store's own terms (for example a `pg` client); refused by stores that have none. It makes
   * no other create wait, so `maxQueued` counts what is committed and what this transaction made, and nothing of other open ones.
   */
  tx?: unknown
  /** Queued jobs that the application may have, this one included. Default: no limit. */
  maxQueued?: number
  /**
   * What the application may use today. With it, the job is counted. In a transaction of the host's it is counted at once, whatever
   * becomes of that. Default: no limit, and nothing is counted.
   */
  quota?: Quota
}

/** Jobs of one kind that wait or run. */
export interface Backlog {
  workflow: string
  /** Labels that they need (`poolOf`). */
  pool: string
  /** Jobs that wait and are due, counted up to 10,000. */
  queued: number
  /** Milliseconds for which the first of them has been due. */
  oldestMs: number
  /** Jobs that run, counted up to 10,000 of all kinds. */
  running: number
}

/** What may be claimed: all of it, by default. */
export interface Claimable {
  /** This job alone. */
  id?: string
  exceptApps?: readonly string[]
  /** Those that the worker can run. */
  workflows?: readonly string[]
  /** What the worker has: jobs that need another label are left. */
  labels?: readonly string[]
}

/** What the sweep looks for. */
export type DueKind =
  /** Started, under a lease that ran out. Earliest first (`lapsesAt`). */
  | 'lapsed'
  /** Marked deleted, not yet purged. Any order. */
  | 'deleted'
  /** Ended, with results whose `expiresAt` has passed and that are not yet removed. Earliest first (`removableAt`). */
  | 'expired'
  /** Queued beyond their deadline. Earliest first (`overdueAt`). */
  | 'overdue'
  /** With a pending webhook message whose next try is due. Earliest first (`deliverableAt`). */
  | 'deliverable'

/**
 * The truth about jobs. A store owns its clock: leases are granted and compared with the store's time, so workers need no
 * common one. "Not there" is `undefined`; a store that cannot answer throws and never reports an absent job.
 *
 * Records handed in and out are the caller's: a store keeps and returns copies.
 */
export interface JobStore {
  /** `process`: correct only while one process writes it. `shared`: correct under any number of writers. */
  readonly traits: { readonly scope: 'process' | 'shared' }

  /**
   * After it returns the job is durable. If a job of the same application that is not deleted and was created within the
   * store's idempotency window (default 24 h) carries the same idempotency key, nothing is written and that job is returned
   * with `created: false`. `createdAt` of the record is set by the store.
   *
   * @throws StemworkError `ALREADY_EXISTS` for an id that the store knows, deleted but unpurged ones included: never overwrites.
   * `QUEUE_FULL` if the application has `maxQueued` queued jobs, of any number of simultaneous calls for each that is too many;
   * never for a repeated key. `QUOTA_EXCEEDED`, likewise. `INVALID_OPTIONS` for a `tx` that the store cannot use.
   */
  create(job: JobRecord, options?: CreateOptions): Promise<{ job: JobRecord; created: boolean }>

  /**
   * Creates many jobs of one application, without idempotency keys: all of them, or, where it throws, none.
   *
   * @throws StemworkError as `create`; `QUEUE_FULL` and `QUOTA_EXCEEDED` if there is no room for all.
   */
  createAll(jobs: readonly JobRecord[], options?: Omit<CreateOptions, 'tx'>): Promise<JobRecord[]>

  /** What the application has used today, by the store's clock, as far as it was counted. */
  usage(app: string): Promise<Usage>

  /** What waits and runs, by workflow and pool, as far as there is any. */
  backlog(): Promise<Backlog[]>

  readonly documents: DocumentStore

  /** The job that `create` would return for this idempotency key instead of making one. */
  findByIdempotencyKey(app: string, key: string): Promise<JobRecord | undefined>

  /** The job, or `undefined` if it never existed, was deleted or purged. */
  get(id: string): Promise<JobRecord | undefined>

  /** Newest first (`createdAt`, then `id`, both descending). A record that cannot be read is left out, and others fill its place. */
  list(page: JobPage): Promise<JobRecord[]>

  /** @param options.max where the count ends: it looks at no more jobs than that. Default: it counts them all. */
  count(query: JobQuery, options?: { max?: number }): Promise<number>

  /** Bytes of the result files that an application's jobs keep: neither deleted nor expired, nor sent to storage of its own. */
  resultBytes(app: string): Promise<number>

  /**
   * Grants a lease, with the next fencing token: on the named job, or without `id` on the one that is next by this rule.
   * 1. Jobs whose lease ran out, earliest first: they have had their turn.
   * 2. Applications take turns: of those with a queued job that is due, the one served longest ago, and before all others
   *    those that were not served, in the order in which they came. A store may forget an application that has no queued job
   *    once all that have one were served later.
   * 3. Inside an application the job with the highest priority, and of these the one that has waited longest (`waitingSince`).
   *
   * Jobs that a rule keeps from being begun (`isHeldBack`) are passed over, as are those of the applications in `exceptApps` and those
   * of other workflows than `workflows`, and those that need other labels than `labels`, where these are given: as if they were not there. Limits hold exactly, however many claims
   * are made at once. A named job is granted by the same rules.
   *
   * Of any number of simultaneous calls each gets another job. `undefined`: nothing to claim; never while a claimable job is
   * there that no other call gets.
   */
  claim(request: ClaimRequest & Claimable): Promise<JobRecord | undefined>

  /** What operators have decided; those that say something. Any order. */
  rules(): Promise<SchedulingRule[]>

  /** After it returns, every claim of any process knows the change. What the change does not name stays as it is. */
  changeRule(target: RuleTarget, change: RuleChange): Promise<void>

  /**
   * How many due jobs of its application are claimed before a queued job that is due, by priority and time alone; counted up to `max`. `undefined` for
   * a job that does not wait: unknown, begun, ended, or not due yet.
   */
  ahead(id: string, options: { max: number }): Promise<number | undefined>

  /**
   * Applies `transition(job, change, now)` atomically and returns the new record. `undefined`: the change does not apply any
   * more (lost lease, ended, deleted or unknown job) and nothing was written. Finds deleted jobs too, as `transition` judges them.
   */
  apply(id: string, change: JobChange): Promise<JobRecord | undefined>

  /**
   * Jobs that the sweep has to attend to; deleted ones only where the kind says so. Never more than `limit`, and none of the
   * applications in `exceptApps`.
   */
  due(kind: DueKind, limit: number, options?: { exceptApps?: readonly string[] }): Promise<JobRecord[]>

  /**
   * Forgets the named job if it is marked deleted, or up to `limit` jobs whose `completedAt` is earlier than `endedBefore`, the
   * earliest first; of those, jobs marked deleted are left, for their files may not be removed yet. Returns the ids of the jobs
   * that are now forgotten; absent ones are no error.
   */
  purge(target: { id: string } | { endedBefore: number; limit: number }): Promise<string[]>

  /** Ids of jobs whose records this process came upon and could not read, as far as it remembers: for operators. */
  unreadable(): Promise<string[]>

  /**
   * Grants a pass over all files, if none was granted in the last `everyMs` milliseconds: of simultaneous calls with a time above 0
   * to one. `deployment` is a random id, made with the store and never changed; `pass` is higher than that of every pass before.
   */
  beginFilePass(everyMs: number): Promise<{ deployment: string; pass: number } | undefined>
}
