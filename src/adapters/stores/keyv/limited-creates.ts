import type { JobRecord } from '../../../core/engine/job/job.js'
import { alreadyExists, queueFull } from '../../../core/engine/job/queue-limit.js'
import { type JobChange, transition } from '../../../core/engine/job/transitions.js'
import type { CreateOptions } from '../../../core/engine/ports/job-store.js'
import type { JobsCall, KnownJobs } from './known-jobs.js'
import type { UsageEntries } from './usage-entries.js'

type CreateLimits = Omit<CreateOptions, 'tx'>

/**
 * Jobs that enter the queue, under the limits of their applications.
 *
 * @param idempotencyMs how long an idempotency key keeps pointing at the job that it made
 */
export function limitedCreates(usage: UsageEntries, clock: () => number, idempotencyMs: number) {
  /** Ids of jobs that are being created or queued again, by application. */
  const creating = new Map<string, Set<string>>()
  return { withIdempotencyKey, create, createAll, retry }

  /** The live job that this key points at. */
  async function withIdempotencyKey(known: KnownJobs, app: string, key: string): Promise<JobRecord | undefined> {
    const first = known.index.withIdempotencyKey(app, key)
    return first && first.createdAt + idempotencyMs > clock() ? await known.read(first.id) : undefined
  }

  /** Creates the job, or returns the one that its idempotency key already points at. */
  async function create(
    call: JobsCall,
    job: JobRecord,
    limits: CreateLimits,
  ): Promise<{ job: JobRecord; created: boolean }> {
    const { known, deadline } = call
    const { app, idempotency } = job
    if (!idempotency) return createNew(call, job, limits)
    return known.locks.hold(JSON.stringify([app, idempotency.key]), async () => {
      deadline.check()
      const found = await withIdempotencyKey(known, app, idempotency.key)
      return found ? { job: found, created: false } : createNew(call, job, limits)
    })
  }

  async function createNew(
    { known, deadline }: JobsCall,
    job: JobRecord,
    { maxQueued = Infinity, quota }: CreateLimits,
  ): Promise<{ job: JobRecord; created: boolean }> {
    const create = () =>
      known.exclusively(job.id, deadline, async () => {
        if (known.index.get(job.id) ?? known.isDamaged(job.id)) throw alreadyExists(job.id)
        const release = reserve(known, job, maxQueued)
        try {
          await known.pages.add(job.id)
          deadline.check()
          return { job: await known.write({ ...job, createdAt: clock() }, 1), created: true }
        } finally {
          release()
        }
      })
    return await usage.taking(job.app, quota, 1, create)
  }

  /**
   * Creates the jobs one after the other; if a create or `finish` fails, the jobs before it are undone. A crash in
   * between leaves them: there are no transactions.
   */
  async function createAll(
    call: JobsCall,
    jobs: readonly JobRecord[],
    { maxQueued = Infinity, quota, finish }: CreateLimits & { finish?: () => Promise<void> },
  ): Promise<JobRecord[]> {
    const { known, deadline } = call
    const [first] = jobs
    if (!first) return []
    return await usage.taking(first.app, quota, jobs.length, async () => {
      const releases: (() => void)[] = []
      const created: JobRecord[] = []
      try {
        for (const job of jobs) releases.push(reserve(known, job, maxQueued))
        for (const job of jobs) created.push((await createNew(call, job, {})).job)
        await finish?.()
        return created
      } catch (error) {
        for (const { id } of created)
          await known.exclusively(id, deadline, async () => {
            const job = known.index.get(id)
            if (job) await known.leaveTombstone(job)
          })
        throw error
      } finally {
        for (const release of releases) release()
      }
    })
  }

  /** Queues a failed job again; it counts against the limits like a new one. */
  async function retry(
    { known, deadline }: JobsCall,
    id: string,
    change: Extract<JobChange, { kind: 'retry' }>,
  ): Promise<JobRecord | undefined> {
    // The limits must not refuse a job that would not be queued anyway.
    const failed = await known.read(id)
    if (!failed || !transition(failed, change, clock())) return undefined
    let release = () => {}
    const queue = () =>
      known.update(id, deadline, (job) => {
        const next = transition(job, change, clock())
        if (next) release = reserve(known, next, change.maxQueued ?? Infinity)
        return next
      })
    try {
      return await usage.taking(failed.app, change.quota, 1, queue)
    } finally {
      release()
    }
  }

  /** Counts a job against its application's limit before it is written: the index knows it only afterwards. */
  function reserve(known: KnownJobs, { app, id }: JobRecord, maxQueued: number): () => void {
    const ids = creating.get(app) ?? new Set<string>()
    const unwritten = [...ids].filter((other) => known.index.get(other)?.status !== 'QUEUED').length
    if (known.index.queued(app) + unwritten >= maxQueued) throw queueFull(maxQueued)
    creating.set(app, ids.add(id))
    return () => {
      ids.delete(id)
      if (ids.size === 0) creating.delete(app)
    }
  }
}
