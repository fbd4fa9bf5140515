import { randomUUID } from 'node:crypto'
import { requireTimes } from '../../../core/engine/errors.js'
import type { JobRecord } from '../../../core/engine/job/job.js'
import { alreadyExists, queueFull } from '../../../core/engine/job/queue-limit.js'
import { changedRules, type SchedulingRule } from '../../../core/engine/job/scheduling.js'
import { claim, transition } from '../../../core/engine/job/transitions.js'
import { type CreateOptions, type JobStore, mostCounted } from '../../../core/engine/ports/job-store.js'
import type { JobClaims, JobEntries, JobLists, JobSweep } from '../shared/method-groups.js'
import { JobIndex } from '../shared/job-index.js'
import { refuseTransaction } from '../shared/no-transactions.js'
import { copyOfJob, copyOfPlain, plainCopy } from '../shared/plain-copy.js'
import { entryOf, LedgerEntries } from '../shared/ledger-entries.js'
import type { DocumentStore } from '../../../core/engine/ports/document-store.js'
import { DocumentMap } from '../shared/document-map.js'
import { addUsage, dayOf, noUsage, quotaExceeded, type Usage } from '../../../core/engine/job/quota.js'

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
 * @throws StemworkError `INVALID_OPTIONS`.
 */
export function memoryJobs({
  clock = Date.now,
  idempotencyMs = 24 * 60 * 60 * 1000,
}: MemoryJobsOptions = {}): JobStore {
  requireTimes('memoryJobs', { idempotencyMs })
  const index = new JobIndex<JobRecord>()
  const kinds: DocumentKinds = new Map()
  const ledger = new LedgerEntries()
  return {
    traits: { scope: 'process' },
    time: async () => clock(),
    documents: memoryDocuments(kinds, clock),
    ledger,
    ...jobEntries(index, { kinds, ledger }, { clock, idempotencyMs }),
    ...jobClaims(index, clock),
    ...jobLists(index),
    ...jobSweep(index, clock),
  }
}

type Jobs = JobIndex<JobRecord>

function jobEntries(
  index: Jobs,
  { kinds, ledger }: { kinds: DocumentKinds; ledger: LedgerEntries },
  { clock, idempotencyMs }: Required<MemoryJobsOptions>,
): JobEntries {
  const { used, count, admit } = admission(index, clock)
  const withIdempotencyKey = (app: string, key: string): JobRecord | undefined => {
    const job = index.withIdempotencyKey(app, key)
    return job && job.createdAt + idempotencyMs > clock() ? copyOfPlain(job) : undefined
  }

  return {
    async create(job, { tx, ...limits } = {}) {
      refuseTransaction('The memory store', tx)
      const first = job.idempotency && withIdempotencyKey(job.app, job.idempotency.key)
      if (first) return { job: first, created: false }
      if (index.get(job.id)) throw alreadyExists(job.id)
      admit(job.app, limits)
      const created = { ...plainCopy(job), createdAt: clock() }
      index.set(created)
      return { job: copyOfPlain(created), created: true }
    },

    async createAll(jobs, { document, ...limits } = {}) {
      const [first] = jobs
      if (!first) return []
      for (const { id } of jobs) if (index.get(id)) throw alreadyExists(id)
      const now = clock()
      const written = document && documentsOf(kinds, document.kind)
      if (written && !written.hasVersion(document.key, document.version, now)) return undefined
      admit(first.app, limits, jobs.length)
      if (document) written?.put(document, document.version, now)
      const created = plainCopy([...jobs]).map((job) => ({ ...job, createdAt: now }))
      for (const job of created) index.set(job)
      return copyOfPlain(created)
    },

    findByIdempotencyKey: async (app, key) => withIdempotencyKey(app, key),

    usage: async (app) => ({ ...used(app) }),

    async apply(id, change) {
      const job = index.get(id)
      const next = job && transition(job, plainCopy(change), clock())
      if (!next) return undefined
      if (change.kind === 'retry') admit(next.app, change)
      if ('usage' in change && change.usage) count(next.app, change.usage)
      ledger.add(entryOf(job, next))
      return kept(index, next)
    },
  }
}

function jobClaims(index: Jobs, clock: () => number): JobClaims {
  let rules: SchedulingRule[] = []

  return {
    async claim({ id, ...request }) {
      const now = clock()
      const wanted = { ...request, rules }
      const job = id === undefined ? index.takeNext(now, wanted) : index.get(id)
      const next = job && index.mayBegin(job, wanted) ? claim(job, request, now) : undefined
      return next && kept(index, next)
    },

    ahead: async (id, { max }) => index.ahead(id, clock(), max),

    queue: async ({ max }) => plainCopy(index.queue(clock(), max)),

    backlog: async () => index.backlog(clock(), mostCounted),

    rules: async () => plainCopy(rules),

    async changeRule(target, change) {
      rules = changedRules(rules, plainCopy(target), change)
    },
  }
}

function jobLists(index: Jobs): JobLists {
  return {
    async get(id) {
      const job = index.get(id)
      return job && !job.deleted ? copyOfJob(job) : undefined
    },

    async list({ limit, offset = 0, after, ...query }) {
      const found: JobRecord[] = []
      if (limit <= 0) return found
      let skip = offset
      await index.each(query, after, (job) => {
        if (skip-- <= 0) found.push(copyOfPlain(job))
        return found.length < limit
      })
      return found
    },

    count: (query, { max } = {}) => index.count(query, max),

    resultBytes: (app) => index.resultBytes(app),

    recordBytes: async (app) => index.recordBytes(app),
  }
}

function jobSweep(index: Jobs, clock: () => number): JobSweep {
  const deployment = randomUUID()
  let pass = 0
  let passAt = -Infinity

  return {
    due: async (reason, limit) => index.due(reason, clock(), limit).map(copyOfPlain),

    deliverable: async (page) => index.deliverable(clock(), page).map(copyOfPlain),

    async purge(target) {
      const gone =
        'id' in target
          ? [index.get(target.id)].flatMap((job) => (job?.deleted ? [job] : []))
          : index.endedBefore(target.endedBefore, target.limit)
      for (const { id } of gone) index.remove(id)
      return gone.map(({ id }) => id)
    },

    unreadable: async () => [],

    async beginFilePass(everyMs) {
      const now = clock()
      // Unless the clock was set back in between.
      if (Math.abs(now - passAt) < everyMs) return undefined
      passAt = now
      return { deployment, pass: ++pass }
    },
  }
}

/** Enters the job's next state. */
function kept(index: Jobs, next: JobRecord): JobRecord {
  index.set(next)
  return copyOfPlain(next)
}

/** Documents in this process's memory, by kind. */
type DocumentKinds = Map<string, DocumentMap>

function documentsOf(kinds: DocumentKinds, kind: string): DocumentMap {
  const known = kinds.get(kind) ?? new DocumentMap()
  kinds.set(kind, known)
  return known
}

function memoryDocuments(kinds: DocumentKinds, clock: () => number): DocumentStore {
  return {
    get: async (kind, key) => documentsOf(kinds, kind).get(key, clock()),
    put: async (document, { version } = {}) => documentsOf(kinds, document.kind).put(document, version, clock()),
    delete: async (kind, key) => void documentsOf(kinds, kind).entries.delete(key),
    list: async (kind, options) => documentsOf(kinds, kind).list(options, clock()),
    due: async (kind, limit) => documentsOf(kinds, kind).due(limit, clock()),
    async removeExpired(limit) {
      let removed = 0
      for (const known of kinds.values()) removed += known.removeExpired(limit - removed, clock())
      return removed
    },
  }
}

/** Today's usage of applications, and whether they may add jobs. */
function admission(index: JobIndex<JobRecord>, clock: () => number) {
  let day = 0
  let byApp = new Map<string, Usage>()
  const used = (app: string) => (day === dayOf(clock()) ? (byApp.get(app) ?? noUsage) : noUsage)
  const count = (app: string, more: Partial<Usage>) => {
    const today = dayOf(clock())
    if (day !== today) byApp = new Map()
    day = today
    byApp.set(app, addUsage(byApp.get(app) ?? noUsage, more))
  }
  /** Counts more jobs against the quota. @throws StemworkError `QUEUE_FULL`, `QUOTA_EXCEEDED`. */
  const admit = (app: string, { maxQueued = Infinity, quota }: Omit<CreateOptions, 'tx'>, more = 1) => {
    if (index.queued(app) + more > Math.ceil(maxQueued)) throw queueFull(maxQueued)
    if (!quota) return
    const refused = quotaExceeded(quota, used(app), more, clock())
    if (refused) throw refused
    count(app, { jobs: more })
  }
  return { used, count, admit }
}
