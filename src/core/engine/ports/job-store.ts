import type { JobRecord } from '../job/job.js'
import type { Quota, Usage } from '../job/quota.js'
import type { RuleChange, RuleTarget, SchedulingRule } from '../job/scheduling.js'
import type { ClaimRequest, JobChange } from '../job/transitions.js'
import type { LedgerEntry, LedgerGroup, LedgerQuery, LedgerTotal } from '../job/ledger.js'
import type { DocumentStore, DocumentWrite } from './document-store.js'
import type { JobQuery } from './job-query.js'

export type { JobQuery }

export interface JobPage extends JobQuery {
  /** Most rows to return. */
  limit: number
  /** Rows to skip. Default: 0. */
  offset?: number
  /** Only jobs after this position in the list; a stable cursor even if that job no longer exists. */
  after?: { createdAt: number; id: string }
}

export interface CreateOptions {
  /**
   * A transaction of the host in the store's terms (for example a `pg` client); refused by stores without transactions.
   * It blocks no other create, so `maxQueued` counts committed jobs and those of this transaction, but not those of
   * other open transactions.
   */
  tx?: unknown
  /** Most queued jobs of the application, including this one. Default: no limit. */
  maxQueued?: number
  /**
   * Limits of the application's usage today. If given, the job is counted; within a host's transaction at once, even if
   * that is rolled back. Default: no limit, and no counting.
   */
  quota?: Quota
}

export interface CreateAllOptions extends Omit<CreateOptions, 'tx'> {
  document?: DocumentWrite & { version: number }
}

/** Waiting and running jobs of one workflow and pool. */
export interface Backlog {
  workflow: string
  /** Labels that these jobs require (`poolOf`). */
  pool: string
  /** Waiting jobs that are due, counted up to 10,000. */
  queued: number
  /** How long the oldest of these has been due, in milliseconds. */
  oldestMs: number
  /** Running jobs, counted up to 10,000 in all. */
  running: number
}

/**
 * Entries for the ends of jobs, kept longer than the jobs. Whichever change ends a job, the entry (`settlement` of the
 * record) is added in the same step, exactly once even after crashes.
 */
export interface Ledger {
  /** Entries by the time of the end, then the id: at most `limit`, starting after `after`. */
  entries(page: LedgerQuery & { limit: number; after?: { endedAt: number; id: string } }): Promise<LedgerEntry[]>
  /** Sums by the fields in `groupBy`, in the order of day, application and workflow. */
  totals(query: LedgerQuery, groupBy: readonly LedgerGroup[]): Promise<LedgerTotal[]>
  /** Deletes the entries of days before this one, and may precompute sums. Returns the number of deleted entries. */
  tidy(options: { keepFromDay: number }): Promise<number>
}

/** Conditions for a claim; by default, any job may be claimed. */
export interface Claimable {
  /** Only this job. */
  id?: string
  exceptApps?: readonly string[]
  /** Only jobs of these applications. */
  onlyApps?: readonly string[]
  /** Workflows that the worker can run. */
  workflows?: readonly string[]
  /** Labels of the worker: jobs that need another label are skipped. */
  labels?: readonly string[]
  /** Only jobs of applications with fewer other running jobs than this. Simultaneous calls may count the same jobs. */
  belowRunning?: number
}

/** Conditions of jobs that a sweep handles. */
export type DueReason =
  /** Started, under an expired lease. Earliest first (`lapsesAt`). */
  | 'lapsed'
  /** Of lapsed jobs, those that need not run: canceled, or past their deadline (`isAbandoned`). Earliest first. */
  | 'abandoned'
  /** Marked deleted, not yet purged. Any order. */
  | 'deleted'
  /** Ended, with results that are not removed although `expiresAt` has passed. Earliest first (`removableAt`). */
  | 'expired'
  /** Queued past their deadline. Earliest first (`overdueAt`). */
  | 'overdue'

/** Selects jobs with due webhook messages. */
export interface DeliverablePage {
  /** Most jobs in all. */
  limit: number
  /** Most jobs of one application. */
  perApp: number
  /** Applications whose jobs are omitted. */
  exceptApps: readonly string[]
}

/**
 * The source of truth about jobs. A store has its own clock: all times in records are by it, and leases are granted and
 * compared with it, so workers' clocks need not agree. An absent job is `undefined`; a store that cannot answer throws
 * and never reports a job as absent.
 *
 * Changes are visible to every later call of every method, including lists and counts; with the scope `shared`, of any
 * process. Of simultaneous changes of one record none is lost: each is applied to the result of the previous one, or
 * does not apply.
 *
 * Ids, applications, workflows, batch names and keys are any text and are compared exactly: they are case-sensitive,
 * and no character is special. A lookup of an unknown one of up to 500 characters reports it as absent. Strings inside
 * a record may have any characters, including U+0000. Unknown fields of a record are kept, because a newer node may
 * have written them. Where a number limits a list, 0 means none.
 *
 * A record that cannot be read does not affect others: `list`, `claim` and `due` omit it and return others instead;
 * `get` throws `STORE_UNAVAILABLE`. Records passed in and out belong to the caller: a store keeps and returns copies.
 */
export interface JobStore {
  /** `process`: correct only while one process writes it. `shared`: correct under any number of writers. */
  readonly traits: { readonly scope: 'process' | 'shared' }

  /** The store's time, in epoch milliseconds. */
  time(): Promise<number>

  /**
   * Creates a job, which is durable when the call resolves. If a job of the same application that is not deleted and
   * was created within the store's idempotency window (default 24 h) has the same idempotency key, nothing is written
   * and that job is returned with `created: false`. The store sets `createdAt` of the record.
   *
   * @throws StemworkError `ALREADY_EXISTS` for an id that the store knows, including deleted but unpurged jobs: never
   * overwrites. `QUEUE_FULL` if the application has `maxQueued` queued jobs, exactly even for simultaneous calls; never
   * for a repeated key. `QUOTA_EXCEEDED`, likewise. `INVALID_OPTIONS` for a `tx` that the store cannot use.
   */
  create(job: JobRecord, options?: CreateOptions): Promise<{ job: JobRecord; created: boolean }>

  /**
   * Creates many jobs of one application, without idempotency keys, and returns them in order: all of them, or none if
   * it throws. A `document` is written in the same step, as by `DocumentStore.put` with its version: if the stored one
   * has another version, nothing is written or created, and the result is `undefined`, even if there is no room.
   *
   * @throws StemworkError as `create` does; `QUEUE_FULL` and `QUOTA_EXCEEDED` if there is no room for all.
   */
  createAll(jobs: readonly JobRecord[], options?: CreateAllOptions): Promise<JobRecord[] | undefined>

  /** Today's counted usage of the application, by the store's clock. */
  usage(app: string): Promise<Usage>

  /**
   * Waiting and running jobs by workflow and pool, in this order, without empty entries. Jobs that are not due yet or
   * are deleted do not count.
   */
  backlog(): Promise<Backlog[]>

  readonly documents: DocumentStore

  /** Absent in stores that keep no ledger. */
  readonly ledger?: Ledger

  /** The existing job that `create` would return for this idempotency key. */
  findByIdempotencyKey(app: string, key: string): Promise<JobRecord | undefined>

  /** The job, or `undefined` if it never existed, was deleted or purged. */
  get(id: string): Promise<JobRecord | undefined>

  /**
   * At most `limit` of the jobs that match every filter, newest first (`createdAt`, then `id`, both descending). Pages
   * by `after` show each job that exists all the time once, whatever is created and deleted meanwhile. Unreadable
   * records are omitted, and others returned instead.
   */
  list(page: JobPage): Promise<JobRecord[]>

  /** @param options.max where counting stops; no more jobs are read. Default: all are counted. */
  count(query: JobQuery, options?: { max?: number }): Promise<number>

  /** Bytes of the result files that an application's jobs keep: not deleted, expired, or sent to its storage. */
  resultBytes(app: string): Promise<number>

  /** Bytes that the records of an application's jobs take (`recordBytes`); those of deleted jobs do not count. */
  recordBytes(app: string): Promise<number>

  /**
   * Grants a lease, with the next fencing token: on the given job, or without `id` on the one that is next by these
   * rules.
   * 1. Jobs whose lease expired (before `lapsedBefore`), earliest first: they have had their turn.
   * 2. Applications take turns: of those with a queued job that is due, first those never served, in order of arrival,
   *    then the one served longest ago. A store may forget an application that has neither a queued nor a running job
   *    once all applications with a queued one were served later.
   * 3. Within an application, the job with the highest priority, and of these the one that has waited longest
   *    (`waitingSince`).
   *
   * Skips jobs that a rule holds back (`isHeldBack`), jobs of applications in `exceptApps` or not in `onlyApps`, of
   * workflows not in `workflows`, with needs not in `labels`, and those that `belowRunning` excludes, where given.
   * Limits hold exactly for any number of simultaneous claims. A job given by `id` is granted under the same
   * conditions.
   *
   * Simultaneous calls get different jobs. `undefined`: no job to claim; never while a claimable job is left that no
   * other call gets.
   */
  claim(request: ClaimRequest & Claimable): Promise<JobRecord | undefined>

  /**
   * Claims the next jobs, at most `max`, in the order in which `claim` would grant them one by one, and fewer only if
   * `claim` would find none. Optional, for stores in which a call costs more than a claim; from other stores, jobs are
   * claimed one by one.
   */
  claimSeveral?(request: ClaimRequest & Omit<Claimable, 'id'>, options: { max: number }): Promise<JobRecord[]>

  /** Operators' rules that differ from the default. Any order. */
  rules(): Promise<SchedulingRule[]>

  /** Changes a rule; when it resolves, all claims in every process obey it. Omitted fields do not change. */
  changeRule(target: RuleTarget, change: RuleChange): Promise<void>

  /**
   * Number of due jobs of its application that are claimed before a due queued job, by priority and time only; counted
   * up to `max`. `undefined` for a job that is not waiting: unknown, started, ended, or not due yet.
   */
  ahead(id: string, options: { max: number }): Promise<number | undefined>

  /**
   * The running jobs, in any order, and the queued jobs that are due, in the order in which claims would grant them if
   * no rule held them back; at most `max` of each. For estimates: need not be exact during simultaneous changes.
   * Optional: without it, waiting jobs have no estimate.
   */
  queue?(options: { max: number }): Promise<{ running: JobRecord[]; waiting: JobRecord[] }>

  /**
   * Applies `transition(job, change, now)` atomically and returns the new record. `undefined`: the change no longer
   * applies (lost lease, ended, deleted or unknown job) and nothing was written. Also finds deleted jobs, on which
   * `transition` decides.
   */
  apply(id: string, change: JobChange): Promise<JobRecord | undefined>

  /** Jobs that the sweep must handle, at most `limit`; deleted jobs only for the reason `deleted`. */
  due(reason: DueReason, limit: number): Promise<JobRecord[]>

  /**
   * Jobs with a pending webhook message whose next attempt is due, earliest first (`deliverableAt`); no deleted jobs.
   * Any number of due jobs of one application does not slow down the search for those of another.
   */
  deliverable(page: DeliverablePage): Promise<JobRecord[]>

  /**
   * Removes the record of the given job if it is marked deleted, or up to `limit` jobs whose `completedAt` is before
   * `endedBefore`, earliest first; of these, jobs marked deleted are kept, because their files may still exist. Returns
   * the ids of the removed jobs; absent jobs are not an error.
   */
  purge(target: { id: string } | { endedBefore: number; limit: number }): Promise<string[]>

  /** Ids of jobs whose records this process could not read, as far as it remembers; for operators. */
  unreadable(): Promise<string[]>

  /**
   * Grants a pass over all files, if none was granted in the last `everyMs` milliseconds: of simultaneous calls with an
   * `everyMs` above 0, only to one. `deployment` is a random id, made with the store and never changed; `pass` is
   * higher than in all earlier passes.
   */
  beginFilePass(everyMs: number): Promise<{ deployment: string; pass: number } | undefined>
}

/** Cap of job counts: larger numbers are slow to determine and not useful. */
export const mostCounted = 10_000
