import { randomUUID } from 'node:crypto'
import { StemworkError } from '../../../core/engine/errors.js'
import type { JobRecord } from '../../../core/engine/job/job.js'
import { alreadyExists, queueFull } from '../../../core/engine/job/queue-limit.js'
import { addUsage, dayOf, noUsage, quotaExceeded, type Usage } from '../../../core/engine/job/quota.js'
import { changedRules, type SchedulingRule } from '../../../core/engine/job/scheduling.js'
import { claim, transition } from '../../../core/engine/job/transitions.js'
import { type CreateOptions, type JobStore } from '../../../core/engine/ports/job-store.js'
import { JobIndex } from '../shared/job-index.js'
import { plainCopy } from '../shared/plain-copy.js'
import { memoryDocuments } from './memory-documents.js'
import { mostCounted } from '../../../core/engine/job/most-counted.js'

export interface MemoryJobsOptions {
  /** Epoch milliseconds. Default: `Date.now`. */
  clock?: () => number
  /** How long an idempotency key keeps pointing at the job that it made. Default: 24 h. */
  idempotencyMs?: number
}

/**
 * Jobs in this process's memory: gone with it. The reference implementation of the port.
 *
 * @example
 * const engine = createEngine({ jobs: memoryJobs() })
 */
export function memoryJobs({
  clock = Date.now,
  idempotencyMs = 24 * 60 * 60 * 1000,
}: MemoryJobsOptions = {}): JobStore {
  const index = new JobIndex<JobRecord>()
  const deployment = randomUUID()
  let rules: SchedulingRule[] = []
  let used = { day: 0, byApp: new Map<string, Usage>() }
  let pass = 0
  let passAt = -Infinity

  return {
    traits: { scope: 'process' },

    async create(job, { tx, maxQueued = Infinity, quota } = {}) {
      if (tx !== undefined) {
        throw new StemworkError(
          'INVALID_OPTIONS',
          'The memory store has no transactions. Call without `tx`, or use a store that joins yours, such as Postgres.',
        )
      }
      const now = clock()
      const first = job.idempotency && withIdempotencyKey(job.app, job.idempotency.key, now)
      if (first) return { job: plainCopy(first), created: false }
      if (index.get(job.id)) throw alreadyExists(job.id)
      refuseMore(job.app, { maxQueued, quota })
      if (quota) count(job.app, { jobs: 1 })
      const created = { ...plainCopy(job), createdAt: now }
      index.set(created)
      return { job: plainCopy(created), created: true }
    },

    async createAll(jobs, { maxQueued = Infinity, quota } = {}) {
      const now = clock()
      const [first] = jobs
      if (!first) return []
      for (const { id } of jobs) if (index.get(id)) throw alreadyExists(id)
      refuseMore(first.app, { maxQueued, quota }, jobs.length)
      if (quota) count(first.app, { jobs: jobs.length })
      const created = plainCopy([...jobs]).map((job) => ({ ...job, createdAt: now }))
      for (const job of created) index.set(job)
      return plainCopy(created)
    },

    async usage(app) {
      return { ...usageOf(app) }
    },

    async backlog() {
      return index.backlog(clock(), mostCounted)
    },

    documents: memoryDocuments(clock),

    async findByIdempotencyKey(app, key) {
      const job = withIdempotencyKey(app, key, clock())
      return job && plainCopy(job)
    },

    async get(id) {
      const job = index.get(id)
      return job && !job.deleted ? plainCopy(job) : undefined
    },

    async list({ limit, offset = 0, after, ...query }) {
      const found: JobRecord[] = []
      if (limit <= 0) return found
      let skip = offset
      for (const job of index.select(query, after)) {
        if (skip-- > 0) continue
        found.push(plainCopy(job))
        if (found.length >= limit) break
      }
      return found
    },

    async count(query, { max } = {}) {
      return index.count(query, max)
    },

    async resultBytes(app) {
      return index.resultBytes(app)
    },

    async claim({ id, exceptApps, workflows, labels, ...request }) {
      const now = clock()
      const wanted = { exceptApps, workflows, labels, rules }
      if (id === undefined) {
        const next = index.takeNext(now, wanted)
        return keep(next && claim(next, request, now))
      }
      const job = index.get(id)
      return keep(job && index.mayBegin(job, wanted) ? claim(job, request, now) : undefined)
    },

    async rules() {
      return plainCopy(rules)
    },

    async changeRule(target, change) {
      rules = changedRules(rules, plainCopy(target), change)
    },

    async ahead(id, { max }) {
      return index.ahead(id, clock(), max)
    },

    async apply(id, change) {
      const job = index.get(id)
      const next = job && transition(job, plainCopy(change), clock())
      if (next && change.kind === 'retry') {
        refuseMore(next.app, change)
        if (change.quota) count(next.app, { jobs: 1 })
      }
      if (next && 'usage' in change && change.usage) count(next.app, change.usage)
      return keep(next)
    },

    async due(kind, limit, { exceptApps } = {}) {
      return index.due(kind, clock(), limit, exceptApps).map(plainCopy)
    },

    async purge(target) {
      const targets =
        'id' in target
          ? [index.get(target.id)].filter((job) => job?.deleted)
          : index.endedBefore(target.endedBefore, target.limit)
      return targets.flatMap((job) => {
        if (!job) return []
        index.remove(job.id)
        return [job.id]
      })
    },

    async unreadable() {
      return []
    },

    async beginFilePass(everyMs) {
      const now = clock()
      if (passAt > now - everyMs) return undefined
      passAt = now
      return { deployment, pass: ++pass }
    },
  }

  function refuseMore(app: string, { maxQueued = Infinity, quota }: Omit<CreateOptions, 'tx'>, more = 1): void {
    if (index.count({ app, statuses: ['QUEUED'] }) + more > Math.ceil(maxQueued)) throw queueFull(maxQueued)
    const refused = quota && quotaExceeded(quota, usageOf(app), more, clock())
    if (refused) throw refused
  }

  function usageOf(app: string): Usage {
    return used.day === dayOf(clock()) ? (used.byApp.get(app) ?? noUsage) : noUsage
  }

  function count(app: string, more: Partial<Usage>): void {
    const sum = addUsage(usageOf(app), more)
    if (used.day !== dayOf(clock())) used = { day: dayOf(clock()), byApp: new Map() }
    used.byApp.set(app, sum)
  }

  function withIdempotencyKey(app: string, key: string, now: number): JobRecord | undefined {
    const job = index.withIdempotencyKey(app, key)
    return job && job.createdAt + idempotencyMs > now ? job : undefined
  }

  function keep(next: JobRecord | undefined): JobRecord | undefined {
    if (!next) return undefined
    index.set(next)
    return plainCopy(next)
  }
}
