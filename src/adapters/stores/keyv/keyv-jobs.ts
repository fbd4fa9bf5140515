import { randomUUID } from 'node:crypto'
import type { Keyv } from 'keyv'
import { z } from 'zod'
import { StemworkError } from '../../../core/engine/errors.js'
import { isDue } from '../shared/is-due.js'
import type { JobRecord } from '../../../core/engine/job/job.js'
import { alreadyExists, queueFull } from '../../../core/engine/job/queue-limit.js'
import { claim, type ClaimRequest, type JobChange, transition } from '../../../core/engine/job/transitions.js'
import { type CreateOptions, type JobStore, mostCounted } from '../../../core/engine/ports/job-store.js'
import { matchesFilters, type Wanted } from '../shared/job-index.js'
import { plainCopy } from '../shared/plain-copy.js'
import { Backend, damaged } from './backend.js'
import { AnswerDeadline } from './answer-deadline.js'
import { JobRecords } from './job-records.js'
import { keyvDocuments } from './keyv-documents.js'
import { KnownJobs } from './known-jobs.js'
import { SchedulingRules } from './scheduling-rules.js'
import { UsageEntries } from './usage-entries.js'

/** Old tombstones that one purge removes. */
const clearedAtOnce = 100

const deploymentKey = 'stemwork/deployment'
const deploymentSchema = z.object({ deployment: z.string(), pass: z.number().int(), at: z.number() })

export interface KeyvJobsOptions {
  /** The host's instance, over any backend. It is set to throw on errors; closing it stays with the host. */
  keyv: Keyv
  /** Epoch milliseconds. Default: `Date.now`. */
  clock?: () => number
  /** How long an idempotency key keeps pointing at the job that it made. Default: 24 h. */
  idempotencyMs?: number
  /** After this time without an answer of the backend an operation fails with `STORE_UNAVAILABLE`. Default: 10 s. */
  timeoutMs?: number
}

/**
 * Jobs in any backend of Keyv. Keyv has neither compare-and-set nor an index, so this store is right only while one process
 * writes it (`traits.scope` is `process`): that process serialises the changes of each job and keeps an index of all jobs in
 * memory, read from the backend at the first use. The backend must not drop entries by itself (no eviction, no `maxmemory`
 * policy but `noeviction`).
 *
 * @example
 * const engine = createEngine({ jobs: keyvJobs({ keyv: new Keyv({ store: new KeyvRedis('redis://127.0.0.1:6379'), namespace: 'jobs' }) }) })
 */
export function keyvJobs({
  keyv,
  clock = Date.now,
  idempotencyMs = 24 * 60 * 60 * 1000,
  timeoutMs = 10_000,
}: KeyvJobsOptions): JobStore {
  const backend = Backend.of(keyv)
  const records = new JobRecords(backend)
  /** Jobs that an unnamed claim is just trying to get. */
  const claiming = new Map<string, Promise<unknown>>()
  /** Queued jobs whose claims are being written: the index knows them as running only afterwards. */
  const begun = new Map<string, JobRecord>()
  const rules = new SchedulingRules(backend)
  const usage = new UsageEntries(backend, clock)
  /** Ids of jobs that are just being created or queued again, by application. */
  const creating = new Map<string, Set<string>>()
  let loading: Promise<KnownJobs> | undefined

  return {
    traits: { scope: 'process' },

    async create(job, { tx, ...limits } = {}) {
      if (tx !== undefined) {
        throw new StemworkError(
          'INVALID_OPTIONS',
          'The Keyv store has no transactions. Call without `tx`, or use a store that joins yours, such as Postgres.',
        )
      }
      const given = plainCopy(job)
      return operate(async (known, deadline) => {
        if (!given.idempotency) return createNew(known, deadline, given, limits)
        const { app, idempotency } = given
        return known.locks.hold(JSON.stringify([app, idempotency.key]), async () => {
          deadline.check()
          const found = await withIdempotencyKey(known, app, idempotency.key)
          return found ? { job: found, created: false } : createNew(known, deadline, given, limits)
        })
      })
    },

    async createAll(jobs, limits = {}) {
      const given = plainCopy([...jobs])
      return operate((known, deadline) => createAll(known, deadline, given, limits))
    },

    usage: (app) => operate(() => usage.read(app)),

    backlog: () => operate(async (known) => known.index.backlog(clock(), mostCounted)),

    documents: keyvDocuments(backend, clock),

    findByIdempotencyKey: (app, key) => operate((known) => withIdempotencyKey(known, app, key)),

    get: (id) => operate((known) => read(known, id)),

    list: ({ limit, offset = 0, after, ...query }) =>
      operate(async (known) => {
        const found: JobRecord[] = []
        let skip = offset
        let cursor = after
        while (found.length < limit) {
          const wanted = limit - found.length
          const batch: { id: string; createdAt: number }[] = []
          for (const job of known.index.select(query, cursor)) {
            if (skip-- > 0) continue
            batch.push(job)
            if (batch.length === wanted) break
          }
          // A job may have changed since it was selected; then the page is filled from further down.
          for (const job of await readLive(known, batch)) if (matchesFilters(job, query)) found.push(job)
          if (batch.length < wanted) break
          skip = 0
          cursor = batch[batch.length - 1]
        }
        return found
      }),

    count: (query, { max } = {}) => operate(async (known) => known.index.count(query, max)),

    resultBytes: (app) => operate(async (known) => known.index.resultBytes(app)),

    claim: ({ id, exceptApps, workflows, labels, ...request }) =>
      operate(async (known, deadline) => {
        const wanted = { exceptApps, workflows, labels, rules: await rules.read(), begun }
        return id === undefined
          ? claimAny(known, deadline, request, wanted)
          : claimOne(known, deadline, id, request, wanted)
      }),

    rules: () => operate(async () => [...(await rules.read())]),

    changeRule: (target, change) => operate((known) => rules.change(known.locks, plainCopy(target), change)),

    ahead: (id, { max }) => operate(async (known) => known.index.ahead(id, clock(), max)),

    async apply(id, change) {
      const given = plainCopy(change)
      return operate(async (known, deadline) => {
        if (given.kind === 'retry') return await retry(known, deadline, id, given)
        const changed = await update(known, deadline, id, (job) => transition(job, given, clock()))
        // A crash here counts too little: there are no transactions.
        if (changed && 'usage' in given && given.usage) await usage.add(changed.app, given.usage)
        return changed
      })
    },

    due: (kind, limit, { exceptApps } = {}) =>
      operate(async (known) => {
        const now = clock()
        for (;;) {
          const listed = known.index.due(kind, now, limit, exceptApps)
          const jobs = await readStored(known, listed)
          // What could not be read is not listed again: others may come in its place.
          if (jobs.length === listed.length) return jobs.filter((job) => isDue(kind, job, now))
        }
      }),

    purge: (target) =>
      operate(async (known, deadline) => {
        const ids =
          'id' in target ? [target.id] : known.index.endedBefore(target.endedBefore, target.limit).map(({ id }) => id)
        const purged = await Promise.all(
          ids.map((id) =>
            exclusively(known, deadline, id, async () => {
              const job = known.index.get(id)
              // An ended job stays ended; it can only have been deleted meanwhile.
              if (!job || job.deleted !== 'id' in target) return []
              await known.leaveTombstone(job)
              return [id]
            }),
          ),
        )
        await known.clear(clearedAtOnce)
        return purged.flat()
      }),

    unreadable: () => operate(async (known) => known.damagedIds),

    beginFilePass: (everyMs) =>
      operate((known, deadline) =>
        known.locks.hold(deploymentKey, async () => {
          deadline.check()
          const text = await backend.read(deploymentKey)
          const last = text === undefined ? undefined : parseDeployment(text)
          const now = clock()
          if (last && last.at > now - everyMs) return undefined
          const begun = { deployment: last?.deployment ?? randomUUID(), pass: (last?.pass ?? 0) + 1 }
          await backend.write(deploymentKey, JSON.stringify({ ...begun, at: now }))
          return begun
        }),
      ),
  }

  async function operate<Result>(
    work: (known: KnownJobs, deadline: AnswerDeadline) => Promise<Result>,
  ): Promise<Result> {
    return AnswerDeadline.run(timeoutMs, async (deadline) => {
      loading ??= KnownJobs.load(backend, records, clock).catch((error: unknown) => {
        loading = undefined
        throw error
      })
      const known = await loading
      await known.settle()
      deadline.check()
      return work(known, deadline)
    })
  }

  async function withIdempotencyKey(known: KnownJobs, app: string, key: string): Promise<JobRecord | undefined> {
    const first = known.index.withIdempotencyKey(app, key)
    return first && first.createdAt + idempotencyMs > clock() ? await read(known, first.id) : undefined
  }

  async function createNew(
    known: KnownJobs,
    deadline: AnswerDeadline,
    job: JobRecord,
    { maxQueued = Infinity, quota }: Omit<CreateOptions, 'tx'>,
  ): Promise<{ job: JobRecord; created: boolean }> {
    const create = () =>
      exclusively(known, deadline, job.id, async () => {
        if (known.index.get(job.id) ?? known.isDamaged(job.id)) throw alreadyExists(job.id)
        const release = reservePlace(known, job, maxQueued)
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

  /** One after the other; where one fails, those before it are taken back. A crash in between leaves them: there are no transactions. */
  async function createAll(
    known: KnownJobs,
    deadline: AnswerDeadline,
    jobs: readonly JobRecord[],
    { maxQueued = Infinity, quota }: Omit<CreateOptions, 'tx'>,
  ): Promise<JobRecord[]> {
    const [first] = jobs
    if (!first) return []
    return await usage.taking(first.app, quota, jobs.length, async () => {
      const releases: (() => void)[] = []
      const created: JobRecord[] = []
      try {
        for (const job of jobs) releases.push(reservePlace(known, job, maxQueued))
        for (const job of jobs) created.push((await createNew(known, deadline, job, {})).job)
        return created
      } catch (error) {
        for (const { id } of created)
          await exclusively(known, deadline, id, async () => {
            const job = known.index.get(id)
            if (job) await known.leaveTombstone(job)
          })
        throw error
      } finally {
        for (const release of releases) release()
      }
    })
  }

  async function retry(
    known: KnownJobs,
    deadline: AnswerDeadline,
    id: string,
    change: Extract<JobChange, { kind: 'retry' }>,
  ): Promise<JobRecord | undefined> {
    const app = known.index.get(id)?.app
    if (app === undefined) return undefined
    let release = () => {}
    const queue = () =>
      update(known, deadline, id, (job) => {
        const next = transition(job, change, clock())
        if (next) release = reservePlace(known, next, change.maxQueued ?? Infinity)
        return next
      })
    try {
      return await usage.taking(app, change.quota, 1, queue)
    } finally {
      release()
    }
  }

  /** Counts a job against its application's limit from before it is written: the index knows it only afterwards. */
  function reservePlace(known: KnownJobs, { app, id }: JobRecord, maxQueued: number): () => void {
    const ids = creating.get(app) ?? new Set<string>()
    const unwritten = [...ids].filter((other) => known.index.get(other)?.status !== 'QUEUED').length
    if (known.index.count({ app, statuses: ['QUEUED'] }) + unwritten >= maxQueued) throw queueFull(maxQueued)
    creating.set(app, ids.add(id))
    return () => {
      ids.delete(id)
      if (ids.size === 0) creating.delete(app)
    }
  }

  async function claimOne(
    known: KnownJobs,
    deadline: AnswerDeadline,
    id: string,
    request: ClaimRequest,
    wanted: Wanted,
  ): Promise<JobRecord | undefined> {
    let isBegun = false
    try {
      return await update(known, deadline, id, (job) => {
        const next = known.index.mayBegin(job, wanted) ? claim(job, request, clock()) : undefined
        isBegun = next !== undefined && job.status === 'QUEUED'
        if (isBegun) begun.set(id, job)
        return next
      })
    } finally {
      if (isBegun) begun.delete(id)
    }
  }

  /** Simultaneous claims try different jobs; one waits for the others only when no other job is left. */
  async function claimAny(
    known: KnownJobs,
    deadline: AnswerDeadline,
    request: ClaimRequest,
    wanted: Wanted,
  ): Promise<JobRecord | undefined> {
    const tried = new Set<string>()
    for (;;) {
      const next = known.index.takeNext(clock(), wanted, [...tried, ...claiming.keys()])
      if (!next) {
        if (claiming.size === 0) return undefined
        // A claim that fails leaves its job to this one.
        await Promise.race(claiming.values())
        deadline.check()
        continue
      }
      tried.add(next.id)
      const attempt = claimOne(known, deadline, next.id, request, wanted).finally(() => claiming.delete(next.id))
      claiming.set(
        next.id,
        attempt.catch(() => {}),
      )
      const granted = await attempt.catch(unlessDamaged(known, next.id))
      if (granted) return granted
    }
  }

  async function update(
    known: KnownJobs,
    deadline: AnswerDeadline,
    id: string,
    change: (job: JobRecord) => JobRecord | undefined,
  ): Promise<JobRecord | undefined> {
    return exclusively(known, deadline, id, async () => {
      known.requireSound(id)
      const current = known.index.get(id) && (await known.current(id))
      const next = current && change(current.job)
      deadline.check()
      return next && known.write(next, current.version + 1)
    })
  }

  async function read(known: KnownJobs, id: string): Promise<JobRecord | undefined> {
    const job = known.index.get(id)
    const [stored] = job ? await readLive(known, [job]) : []
    if (!stored) known.requireSound(id)
    return stored
  }

  /** Those of the jobs that are there and not deleted. */
  async function readLive(known: KnownJobs, jobs: readonly { id: string }[]): Promise<JobRecord[]> {
    const stored = await readStored(known, jobs)
    return stored.filter((job) => !job.deleted && known.index.get(job.id)?.deleted === false)
  }

  async function readStored(known: KnownJobs, jobs: readonly { id: string }[]): Promise<JobRecord[]> {
    const entries = await records.readMany(jobs.map(({ id }) => id))
    const found: JobRecord[] = []
    for (const [index, { id }] of jobs.entries()) {
      const entry = entries[index]
      if (entry && 'job' in entry) found.push(entry.job)
      // The backend lost or spoilt the record: a listing without it, and a sweep that does not stumble over it for ever.
      else await known.locks.hold(id, () => known.current(id)).catch(unlessDamaged(known, id))
    }
    return found
  }
}

/** For errors of one damaged job, which are not to stop the work on others. */
function unlessDamaged(known: KnownJobs, id: string): (error: unknown) => undefined {
  return (error) => {
    if (!known.isDamaged(id)) throw error
  }
}

function parseDeployment(text: string): z.output<typeof deploymentSchema> {
  try {
    return deploymentSchema.parse(JSON.parse(text))
  } catch (error) {
    throw damaged(deploymentKey, error)
  }
}

/** Runs `work` under the job's lock, unless its caller has stopped waiting by then. */
function exclusively<Result>(
  known: KnownJobs,
  deadline: AnswerDeadline,
  id: string,
  work: () => Promise<Result>,
): Promise<Result> {
  return known.locks.hold(id, () => {
    deadline.check()
    return work()
  })
}
