import { randomUUID } from 'node:crypto'
import type { Keyv } from 'keyv'
import { z } from 'zod'
import { requireTimes } from '../../../core/engine/errors.js'
import { deliverableAt } from '../../../core/engine/job/due-times.js'
import { isTerminal, type JobRecord } from '../../../core/engine/job/job.js'
import { transition } from '../../../core/engine/job/transitions.js'
import { matcherOf } from '../../../core/engine/ports/job-query.js'
import { type JobPage, type JobStore, type Ledger, mostCounted } from '../../../core/engine/ports/job-store.js'
import type { JobClaims, JobEntries, JobLists, JobSweep } from '../shared/method-groups.js'
import { isDue } from '../shared/is-due.js'
import type { IndexedJob } from '../shared/indexed-job.js'
import { refuseTransaction } from '../shared/no-transactions.js'
import { plainCopy } from '../shared/plain-copy.js'
import { answerWithin } from './answer-deadline.js'
import { Backend, parsed } from './backend.js'
import { claims } from './job-claims.js'
import { keyvDocuments, type KeyvDocuments } from './keyv-documents.js'
import { type JobsCall, KnownJobs } from './known-jobs.js'
import { type KeyvLedger, keyvLedger } from './keyv-ledger.js'
import { limitedCreates } from './limited-creates.js'
import { schedulingRules } from './scheduling-rules.js'
import { usageEntries } from './usage-entries.js'

/** Most expired tombstones that one purge removes. */
const clearedAtOnce = 100

/** The entry with the name of the deployment, and the number and time of its last pass. */
const deploymentKey = 'stemwork/deployment'
const deploymentSchema = z.object({ deployment: z.string(), pass: z.number().int(), at: z.number() })

export interface KeyvStoresOptions {
  /** The host's instance, over any backend. It is set to throw on errors; the host closes it. */
  keyv: Keyv
  /** Epoch milliseconds. Default: `Date.now`. */
  clock?: () => number
  /** How long an idempotency key keeps pointing at the job that it made. Default: 24 h. */
  idempotencyMs?: number
  /** An operation without an answer of the backend fails with `STORE_UNAVAILABLE` after this time. Default: 10 s. */
  timeoutMs?: number
}

/**
 * Jobs in any backend of Keyv. Keyv has neither compare-and-set nor an index, so this store is correct only while one
 * process writes it (`traits.scope` is `process`): that process serializes the changes of each job and keeps an index
 * of all jobs in memory, read from the backend at the first use. The backend must not drop entries by itself (no
 * eviction, no `maxmemory` policy but `noeviction`).
 */
export function keyvJobs(options: KeyvStoresOptions): JobStore {
  const { clock = Date.now, idempotencyMs = 24 * 60 * 60 * 1000, timeoutMs = 10_000 } = options ?? {}
  requireTimes('keyvStores', { idempotencyMs })
  const backend = Backend.of(options)
  const operate = operations(backend, clock, timeoutMs)
  const ledger = keyvLedger(backend)
  const { after, ...documents } = keyvDocuments(backend, clock, timeoutMs)
  const parts: StoreParts = { operate, backend, ledger, clock }
  return {
    traits: { scope: 'process' },
    time: async () => clock(),
    documents,
    ledger: jobLedger(parts),
    ...jobEntries(parts, after, idempotencyMs),
    ...jobClaims(parts),
    ...jobLists(parts),
    ...jobSweep(parts),
  }
}

/** Runs work on the known jobs, within the time that an answer may take. */
type Operate = <Result>(work: (call: JobsCall) => Promise<Result>) => Promise<Result>

/** Parts that the groups of the store's methods share. */
interface StoreParts {
  operate: Operate
  backend: Backend
  ledger: KeyvLedger
  clock: () => number
}

function operations(backend: Backend, clock: () => number, timeoutMs: number): Operate {
  let loading: Promise<KnownJobs> | undefined
  return (work) =>
    answerWithin(timeoutMs, async (deadline) => {
      loading ??= KnownJobs.load(backend, clock).catch((error: unknown) => {
        loading = undefined
        throw error
      })
      const known = await loading
      await known.settle()
      deadline.check()
      return await work({ known, deadline })
    })
}

/** Methods by which jobs enter the queue, for the first time or again, and change. */
function jobEntries(
  { operate, backend, ledger, clock }: StoreParts,
  after: KeyvDocuments['after'],
  idempotencyMs: number,
): JobEntries {
  const usage = usageEntries(backend, clock)
  const creates = limitedCreates(usage, clock, idempotencyMs)
  return {
    async create(job, { tx, ...limits } = {}) {
      refuseTransaction('The Keyv store', tx)
      const given = plainCopy(job)
      return await operate((call) => creates.create(call, given, limits))
    },

    async createAll(jobs, { document, ...limits } = {}) {
      const given = plainCopy([...jobs])
      const created = (finish?: () => Promise<void>) =>
        operate((call) => creates.createAll(call, given, { ...limits, finish }))
      return document ? await after(plainCopy(document), created) : await created()
    },

    findByIdempotencyKey: (app, key) => operate(({ known }) => creates.withIdempotencyKey(known, app, key)),

    usage: (app) => operate(() => usage.read(app)),

    async apply(id, change) {
      const given = plainCopy(change)
      return await operate(async (call) => {
        const { known, deadline } = call
        if (given.kind === 'retry') {
          // The job's next end overwrites this one in the record.
          const failed = known.index.get(id)
          if (failed) await ledger.ensure([failed])
          return await creates.retry(call, id, given)
        }
        const changed = await known.update(id, deadline, (job) => transition(job, given, clock()))
        // After a crash here, too little is counted: there are no transactions.
        if (changed && 'usage' in given && given.usage) await usage.add(changed.app, given.usage)
        if (changed && isTerminal(changed)) await ledger.ensure([changed])
        return changed
      })
    },
  }
}

function jobClaims({ operate, backend, clock }: StoreParts): JobClaims {
  const rules = schedulingRules(backend)
  const { one, any } = claims(clock)
  return {
    claim: ({ id, ...request }) =>
      operate(async (call) => {
        const wanted = { ...request, rules: await rules.read() }
        return id === undefined ? any(call, request, wanted) : one(call, id, request, wanted)
      }),

    ahead: (id, { max }) => operate(async ({ known }) => known.index.ahead(id, clock(), max)),

    queue: ({ max }) =>
      operate(async ({ known }) => {
        const { running, waiting } = known.index.queue(clock(), max)
        return { running: await known.readLive(running), waiting: await known.readLive(waiting) }
      }),

    backlog: () => operate(async ({ known }) => known.index.backlog(clock(), mostCounted)),

    rules: () => operate(async () => [...(await rules.read())]),

    changeRule: (target, change) => operate(({ known }) => rules.change(known.locks, plainCopy(target), change)),
  }
}

function jobLists({ operate }: StoreParts): JobLists {
  return {
    get: (id) => operate(({ known }) => known.read(id)),

    list: (page) => operate(({ known }) => listJobs(known, page)),

    count: (query, { max } = {}) => operate(({ known }) => known.index.count(query, max)),

    resultBytes: (app) => operate(({ known }) => known.index.resultBytes(app)),

    recordBytes: (app) => operate(async ({ known }) => known.index.recordBytes(app)),
  }
}

async function listJobs(known: KnownJobs, { limit, offset = 0, after, ...query }: JobPage): Promise<JobRecord[]> {
  const found: JobRecord[] = []
  const matches = matcherOf(query)
  let skip = offset
  let cursor = after
  while (found.length < limit) {
    const wanted = limit - found.length
    const batch: { id: string; createdAt: number }[] = []
    await known.index.each(query, cursor, (job) => {
      if (skip-- <= 0) batch.push(job)
      return batch.length < wanted
    })
    // A job may have changed since it was selected; then jobs from further down fill the page.
    for (const job of await known.readLive(batch)) if (matches(job)) found.push(job)
    if (batch.length < wanted) break
    skip = 0
    cursor = batch[batch.length - 1]
  }
  return found
}

function jobLedger({ operate, ledger }: StoreParts): Ledger {
  const whole = <Result>(work: (entries: Ledger) => Promise<Result>) =>
    operate(async ({ known }) => work(await ledger.complete(known)))
  return {
    entries: (page) => whole((entries) => entries.entries(page)),
    totals: (query, groupBy) => whole((entries) => entries.totals(query, groupBy)),
    tidy: (options) =>
      operate(async ({ known }) => {
        await ledger.complete(known)
        return await ledger.forget(options)
      }),
  }
}

function jobSweep({ operate, backend, ledger, clock }: StoreParts): JobSweep {
  return {
    due: (reason, limit) =>
      operate(async ({ known }) => {
        const now = clock()
        const jobs = await readable(known, () => known.index.due(reason, now, limit))
        return jobs.filter((job) => isDue(reason, job, now))
      }),

    deliverable: (page) =>
      operate(async ({ known }) => {
        const now = clock()
        const jobs = await readable(known, () => known.index.deliverable(now, page))
        return jobs.filter((job) => (deliverableAt(job) ?? Infinity) <= now)
      }),

    purge: (target) =>
      operate(async ({ known, deadline }) => {
        const ids =
          'id' in target ? [target.id] : known.index.endedBefore(target.endedBefore, target.limit).map(({ id }) => id)
        const purged = await Promise.all(
          ids.map((id) =>
            known.exclusively(id, deadline, async () => {
              const job = known.index.get(id)
              // An ended job stays ended, but may have been deleted meanwhile.
              if (!job || job.deleted !== 'id' in target) return []
              await ledger.ensure([job])
              await known.leaveTombstone(job)
              return [id]
            }),
          ),
        )
        await known.clear(clearedAtOnce)
        return purged.flat()
      }),

    unreadable: () => operate(async ({ known }) => known.damagedIds),

    beginFilePass: (everyMs) =>
      operate(({ known, deadline }) =>
        known.locks.hold(deploymentKey, async () => {
          deadline.check()
          const last = parsed(deploymentSchema, deploymentKey, await backend.read(deploymentKey))
          const now = clock()
          if (last && Math.abs(now - last.at) < everyMs) return undefined
          const begun = { deployment: last?.deployment ?? randomUUID(), pass: (last?.pass ?? 0) + 1 }
          await backend.write(deploymentKey, JSON.stringify({ ...begun, at: now }))
          return begun
        }),
      ),
  }
}

/** Returns the listed jobs as stored. Unreadable jobs are not listed again, so that others may take their place. */
async function readable(known: KnownJobs, list: () => IndexedJob[]): Promise<JobRecord[]> {
  for (;;) {
    const listed = list()
    const jobs = await known.readStored(listed)
    if (jobs.length === listed.length) return jobs
  }
}
