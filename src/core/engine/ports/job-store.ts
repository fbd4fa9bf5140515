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
   * A transaction of the host in the store's own terms (for example a `pg` client); refused by stores without
   * transactions. It blocks no other create, so `maxQueued` counts committed jobs and this transaction's own, but not
   * those of other open transactions.
   */
  tx?: unknown
  /** Queued jobs that the application may have, this one included. Default: no limit. */
  maxQueued?: number
  /**
   * What the application may use today. If given, the job is counted; inside a host's transaction at once, even if that
   * is rolled back. Default: no limit, and nothing is counted.
   */
  quota?: Quota
}

export interface CreateAllOptions extends Omit<CreateOptions, 'tx'> {
  document?: DocumentWrite & { version: number }
}

/** Waiting and running jobs of one workflow and pool. */
export interface Backlog {
  workflow: string
  /** Labels that they require (`poolOf`). */
  pool: string
  /** Waiting jobs that are due, counted up to 10,000. */
  queued: number
  /** How long the first of them has been due, in milliseconds. */
  oldestMs: number
  /** Running jobs, counted up to 10,000 in all. */
  running: number
}

/**
 * The ends of jobs, kept beyond the jobs. Whatever change ends a job, its entry (`settlement` of the record) is added
 * in the same step: once, whatever crashes.
 */
export interface Ledger {
  /** By the time of the end, then the id: at most `limit` that come after `after`. */
  entries(page: LedgerQuery & { limit: number; after?: { endedAt: number; id: string } }): Promise<LedgerEntry[]>
  /** Sums in the order of day, application and workflow, of those that `groupBy` names. */
  totals(query: LedgerQuery, groupBy: readonly LedgerGroup[]): Promise<LedgerTotal[]>
  /** Forgets the entries of days before this one, and may prepare sums. Returns how many entries it forgot. */
  tidy(options: { keepFromDay: number }): Promise<number>
}

/** What may be claimed; by default, any job. */
export interface Claimable {
  /** This job alone. */
  id?: string
  exceptApps?: readonly string[]
  /** Jobs of these applications alone. */
  onlyApps?: readonly string[]
  /** Workflows that the worker can run. */
  workflows?: readonly string[]
  /** Labels of the worker: jobs that need another label are left. */
  labels?: readonly string[]
  /** Only jobs of applications of which fewer other jobs run than this. Simultaneous calls may count the same jobs. */
  belowRunning?: number
}

/** What the sweep looks for. */
export type DueReason =
  /** Started, under an expired lease. Earliest first (`lapsesAt`). */
  | 'lapsed'
  /** Of these, the ones that nobody need run: canceled, or past their deadline (`isAbandoned`). Earliest first. */
  | 'abandoned'
  /** Marked deleted, not yet purged. Any order. */
  | 'deleted'
  /** Ended, with results whose `expiresAt` has passed and that are not yet removed. Earliest first (`removableAt`). */
  | 'expired'
  /** Queued past their deadline. Earliest first (`overdueAt`). */
  | 'overdue'

/** Which jobs with due webhook messages. */
export interface DeliverablePage {
  /** Most jobs in all. */
  limit: number
  /** Most jobs of one application. */
  perApp: number
  /** Applications whose jobs are left out. */
  exceptApps: readonly string[]
}

/**
 * The truth about jobs. A store owns its clock: all times in records are its own, and leases are granted and compared
 * with it, so workers' clocks need not agree. "Not there" is `undefined`; a store that cannot answer throws and never
 * reports an absent job.
 *
 * What a method has changed is seen by every later call of every method, lists and counts included; with the scope
 * `shared`, of any process. Of simultaneous changes of one record none is lost: each is applied to what the one before
 * left, or does not apply.
 *
 * IDs, applications, workflows, batch names and keys are any text and are compared exactly: upper and lower case
 * differ, and no character is special. A lookup of one that is unknown, of up to 500 characters, answers that it is not
 * there. Texts inside a record may have any characters, U+0000 too. Fields of a record that this version does not know
 * are kept: a newer node may have written them. Where a number limits a list, 0 means none.
 *
 * A record that cannot be read keeps no other from its work: `list`, `claim` and `due` leave it out and return others
 * instead; `get` throws `STORE_UNAVAILABLE`. Records passed in and out belong to the caller: a store keeps
 * and returns copies.
 */
export interface JobStore {
  /** `process`: correct only while one process writes it. `shared`: correct under any number of writers. */
  readonly traits: { readonly scope: 'process' | 'shared' }

  /** The store's time, in epoch milliseconds. */
  time(): Promise<number>

  /**
   * After it returns the job is durable. If a job of the same application that is not deleted and was created within
   * the store's idempotency window (default 24 h) carries the same idempotency key, nothing is written and that job is
   * returned with `created: false`. `createdAt` of the record is set by the store.
   *
   * @throws StemworkError `ALREADY_EXISTS` for an id that the store knows, deleted but unpurged ones included: never
   * overwrites. `QUEUE_FULL` if the application has `maxQueued` queued jobs, exactly even for simultaneous calls; never
   * for a repeated key. `QUOTA_EXCEEDED`, likewise. `INVALID_OPTIONS` for a `tx` that the store cannot use.
   */
  create(job: JobRecord, options?: CreateOptions): Promise<{ job: JobRecord; created: boolean }>

  /**
   * Creates many jobs of one application, without idempotency keys, and returns them in their order: all of them, or,
   * where it throws, none. With a `document`, it is written in the same step, as `DocumentStore.put` does with its
   * version: if it has another version, nothing is written or created, and the answer is `undefined`, even where there
   * is no room.
   *
   * @throws StemworkError as `create`; `QUEUE_FULL` and `QUOTA_EXCEEDED` if there is no room for all.
   */
  createAll(jobs: readonly JobRecord[], options?: CreateAllOptions): Promise<JobRecord[] | undefined>

  /** What the application used today, by the store's clock, as far as it was counted. */
  usage(app: string): Promise<Usage>

  /**
   * Waiting and running jobs by workflow and pool, in the order of these; none for empty ones. Jobs that
   * are not due yet or are deleted do not count.
   */
  backlog(): Promise<Backlog[]>

  readonly documents: DocumentStore

  /** Absent in stores that keep none. */
  readonly ledger?: Ledger

  /** The job that `create` would return for this idempotency key instead of making one. */
  findByIdempotencyKey(app: string, key: string): Promise<JobRecord | undefined>

  /** The job, or `undefined` if it never existed, was deleted or purged. */
  get(id: string): Promise<JobRecord | undefined>

  /**
   * Newest first (`createdAt`, then `id`, both descending), at most `limit` of those that match every
   * filter. Pages by `after` show each job once that exists all the time, whatever is created and deleted meanwhile. An
   * unreadable record is left out, and others come instead.
   */
  list(page: JobPage): Promise<JobRecord[]>

  /** @param options.max where counting stops; it reads no more jobs than that. Default: it counts them all. */
  count(query: JobQuery, options?: { max?: number }): Promise<number>

  /** Bytes of the result files that an application's jobs keep: not deleted, expired, or sent to its own storage. */
  resultBytes(app: string): Promise<number>

  /** Bytes that the records of an application's jobs take (`recordBytes`); those of deleted jobs do not count. */
  recordBytes(app: string): Promise<number>

  /**
   * Grants a lease, with the next fencing token: on the named job, or without `id` on the one that is next by this
   * rule.
   * 1. Jobs whose lease ran out (before `lapsedBefore`), earliest first: they have had their turn.
   * 2. Applications take turns: of those with a queued job that is due, the one served longest ago, and before all
   *    others those that were not served, in the order in which they came. A store may forget an application that has
   *    neither a queued nor a running job once all that have a queued one were served later.
   * 3. Within an application, the job with the highest priority, and of these the one that has waited longest
   *    (`waitingSince`).
   *
   * Skips jobs that a rule holds back (`isHeldBack`), those of applications in `exceptApps` or not in `onlyApps`, those
   * of workflows not in `workflows`, those that need labels not in `labels` and those above `belowRunning`, where
   * given. Limits hold exactly for any number of simultaneous claims. A named job is granted by the same rules.
   *
   * Simultaneous calls get different jobs. `undefined`: nothing to claim; never while a claimable job is left that no
   * other call gets.
   */
  claim(request: ClaimRequest & Claimable): Promise<JobRecord | undefined>

  /**
   * The next jobs, at most `max`, in the order in which `claim` would grant them one by one, and fewer only where
   * `claim` would find nothing. Optional, for stores in which a call costs more than a claim: others are asked for one
   * job after the other.
   */
  claimSeveral?(request: ClaimRequest & Omit<Claimable, 'id'>, options: { max: number }): Promise<JobRecord[]>

  /** Operators' rules that differ from the default. Any order. */
  rules(): Promise<SchedulingRule[]>

  /** After it returns, all claims in every process follow the change. Omitted fields do not change. */
  changeRule(target: RuleTarget, change: RuleChange): Promise<void>

  /**
   * How many due jobs of its application are claimed before a due queued job, by priority and time alone; counted up to
   * `max`. `undefined` for a job that is not waiting: unknown, started, ended, or not due yet.
   */
  ahead(id: string, options: { max: number }): Promise<number | undefined>

  /**
   * What runs, in any order, and the queued jobs that are due, in the order in which claims would grant them if nothing
   * held them back; at most `max` of each. For estimates: it need not be exact while others change jobs. Optional:
   * without it, waiting jobs have no estimate.
   */
  queue?(options: { max: number }): Promise<{ running: JobRecord[]; waiting: JobRecord[] }>

  /**
   * Applies `transition(job, change, now)` atomically and returns the new record. `undefined`: the change does not
   * apply any more (lost lease, ended, deleted or unknown job) and nothing was written. Finds deleted jobs too, as
   * `transition` judges them.
   */
  apply(id: string, change: JobChange): Promise<JobRecord | undefined>

  /** Jobs that the sweep has to handle; deleted ones only if the reason says so. Never more than `limit`. */
  due(reason: DueReason, limit: number): Promise<JobRecord[]>

  /**
   * Jobs with a pending webhook message whose next attempt is due, earliest first (`deliverableAt`); no deleted ones.
   * However many of one application are due, finding those of another takes no longer.
   */
  deliverable(page: DeliverablePage): Promise<JobRecord[]>

  /**
   * Forgets the named job if it is marked deleted, or up to `limit` jobs whose `completedAt` is earlier than
   * `endedBefore`, the earliest first; of those, jobs marked deleted are kept, because their files may still exist.
   * Returns the IDs of the jobs that are now forgotten; absent ones are not an error.
   */
  purge(target: { id: string } | { endedBefore: number; limit: number }): Promise<string[]>

  /** IDs of jobs whose records this process found and could not read, as far as it remembers; for operators. */
  unreadable(): Promise<string[]>

  /**
   * Grants a pass over all files, if none was granted in the last `everyMs` milliseconds: of simultaneous calls with a
   * time above 0, to one only. `deployment` is a random id, made with the store and never changed; `pass` is higher
   * than that of every pass before.
   */
  beginFilePass(everyMs: number): Promise<{ deployment: string; pass: number } | undefined>
}

/** Where counts of jobs stop: beyond it, the exact number is slow to find and of no use. */
export const mostCounted = 10_000
