import { setTimeout as delay } from 'node:timers/promises'
import { batchKey, batchKind, type Batch } from '../../src/core/engine/batch/batch.js'
import { sampleJob } from '../../src/contract/job-samples.js'
import type { JobRecord } from '../../src/core/engine/job/job.js'
import { isTerminal } from '../../src/core/engine/job/job.js'
import type { JobStore } from '../../src/core/engine/ports/job-store.js'
import type { StageContext } from '../../src/core/engine/workflow/workflow.js'
import type { SimulatedNode, World } from './world.js'

/** Number of jobs that the metered application may submit on the day of a history. */
export const meteredJobs = 1

interface Run {
  node: SimulatedNode
  startedAt: number
}

export interface Seen {
  runs: number
  takeOvers: number
  successes: number
  cancels: number
  batches: number
  /** Submissions refused beyond the quota. */
  refusals: number
}

/** Rules for jobs and batches, stated independently of the engine, and a record of events. */
export class Ledger {
  readonly violations: string[] = []
  readonly #world: World
  readonly #jobsMs: number
  readonly #accepted = new Set<string>()
  readonly #canceled = new Set<string>()
  readonly #batches = new Map<string, number>()
  readonly #runs = new Map<string, Run[]>()
  readonly #ended = new Map<string, string>()
  readonly #purged = new Set<string>()
  readonly #announced = new Map<string, Set<string>>()
  readonly #seen: Seen = { runs: 0, takeOvers: 0, successes: 0, cancels: 0, batches: 0, refusals: 0 }
  /** Times at which a node was disturbed: dead, frozen, or cut off from the store. */
  readonly #disturbed = new Map<SimulatedNode, number[]>()

  constructor(world: World, jobsMs: number) {
    this.#world = world
    this.#jobsMs = jobsMs
  }

  /** Counts of events, so that a test can tell whether anything happened. */
  get seen(): Readonly<Seen> {
    return this.#seen
  }

  accepted({ id }: JobRecord): void {
    this.#accepted.add(id)
  }

  refused(): void {
    this.#seen.refusals++
  }

  canceled(id: string): void {
    this.#canceled.add(id)
  }

  batchAccepted(name: string, jobs: number): void {
    this.#batches.set(name, jobs)
  }

  disturbed(node: SimulatedNode): void {
    this.#disturbed.set(node, [...(this.#disturbed.get(node) ?? []), this.#world.now])
  }

  /** Adds a job that has just ended to the store. */
  endedBefore(id: string, store: JobStore): void {
    const end = { status: 'SUCCEEDED' as const, completedAt: this.#world.now, outputs: null }
    void store.create(sampleJob({ id, app: 'old', ...end }))
    this.#accepted.add(id)
  }

  /** Returns what a stage does on a node. */
  stage(node: SimulatedNode) {
    return async ({ jobId, signal }: StageContext, seconds: number) => {
      const earlier = this.#runs.get(jobId) ?? []
      const last = earlier.at(-1)
      this.#seen.runs++
      if (last && last.node !== node) this.#seen.takeOvers++
      // Another run is allowed only if the previous run's node was disturbed; an outage is no reason.
      if (last && !this.#wasDisturbed(last))
        this.#violated(
          `${jobId} runs again on ${node.name}, though nothing but an outage happened to ${last.node.name}`,
        )
      this.#runs.set(jobId, [...earlier, { node, startedAt: this.#world.now }])
      await delay(seconds * 1000, undefined, { signal })
    }
  }

  /** The store, with a check of each of its changes. */
  watching(store: JobStore): JobStore {
    const { apply, claim, purge, documents } = store
    return {
      ...store,
      apply: async (id, change) => this.#judged(await apply(id, change)),
      claim: async (request) => {
        const job = this.#judged(await claim(request))
        if (job && (await store.count({ app: 'limited', statuses: ['STARTED'] })) > 1)
          this.#violated(`more jobs of an application run than its limit`)
        return job
      },
      purge: async (target) => {
        const gone = await purge(target)
        for (const id of gone) {
          this.#purged.add(id)
          if ('endedBefore' in target && target.endedBefore > this.#world.now - this.#jobsMs)
            this.#violated(`${id} was purged before its time`)
        }
        return gone
      },
      documents: {
        ...documents,
        put: async (document, options) => {
          const written = await documents.put(document, options)
          if (written !== undefined && document.kind === batchKind)
            await this.#judgeBatch(document.value as Batch, store)
          return written
        },
      },
    }
  }

  /** Whether an accepted job or batch has not ended yet. */
  async isOpen(store: JobStore): Promise<boolean> {
    for (const id of this.#accepted) {
      const job = await store.get(id)
      if (job && this.#mustEnd(job)) return true
    }
    return [...this.#batches.keys()].some((name) => this.#announced.get(name)?.size !== 1)
  }

  #mustEnd(job: JobRecord): boolean {
    const isServed = job.workflow !== 'sim/rare' || !this.#isDead('ann')
    return !isTerminal(job) && (isServed || this.#canceled.has(job.id))
  }

  /** After all faults have ended: everything accepted must have ended. */
  async checkEnd(store: JobStore): Promise<void> {
    for (const id of this.#accepted) {
      const job = await store.get(id)
      if (!job && !this.#purged.has(id)) this.#violated(`${id} is lost`)
      if (job && this.#mustEnd(job))
        this.#violated(`${id} has not ended: ${job.status}${job.cancelRequested ? ', canceled' : ''}`)
    }
    const metered = await store.count({ app: 'metered' })
    if (metered > meteredJobs) this.#violated(`${metered} jobs were accepted with a quota of ${meteredJobs}`)
    for (const job of await store.list({ limit: 100 })) {
      if ('ofTheFuture' in job && JSON.stringify(job.ofTheFuture) !== '{"kept":true}')
        this.#violated(`${job.id} lost a field of a newer node`)
    }
    for (const [name, jobs] of this.#batches) {
      const document = await store.documents.get(batchKind, batchKey('app', name))
      const batch = document?.value as Batch | undefined
      if (!batch?.endedAt) this.#violated(`${name} with ${jobs} jobs has not ended`)
      if (this.#announced.get(name)?.size !== 1) this.#violated(`${name} was not announced once`)
    }
  }

  #isDead(name: string): boolean {
    return [...this.#disturbed.keys()].some((node) => node.name === name && node.isDead)
  }

  #wasDisturbed({ node, startedAt }: Run): boolean {
    const times = this.#disturbed.get(node) ?? []
    return node.isFrozen || node.isDead || times.some((at) => at >= startedAt - 100_000)
  }

  #judged(job: JobRecord | undefined): JobRecord | undefined {
    if (!job) return undefined
    const ended = this.#ended.get(job.id)
    if (ended !== undefined && ended !== job.status) this.#violated(`${job.id} was ${ended}, and is ${job.status} now`)
    if (isTerminal(job)) this.#judgeEnd(job, ended === undefined)
    return job
  }

  #judgeEnd(job: JobRecord, isFirst: boolean): void {
    this.#ended.set(job.id, job.status)
    const announced = job.deliveries.filter(({ event }) => event !== 'job.started').length
    if (announced !== (job.webhook ? 1 : 0)) this.#violated(`${job.id} ended with ${announced} messages`)
    if (job.status === 'FAILED' && job.error?.code !== 'CANCELED')
      this.#violated(`${job.id} failed: ${job.error?.message}`)
    if (!isFirst) return
    if (job.status === 'SUCCEEDED') this.#seen.successes++
    else this.#seen.cancels++
  }

  async #judgeBatch(batch: Batch, store: JobStore): Promise<void> {
    if (batch.endedAt === null) return
    const ids = batch.deliveries.map(({ id }) => id)
    this.#seen.batches++
    this.#announced.set(batch.name, new Set([...(this.#announced.get(batch.name) ?? []), ...ids]))
    const scope = { app: batch.app, batchName: batch.name }
    const [open, all] = [
      await store.count({ ...scope, statuses: ['QUEUED', 'STARTED'] }),
      await store.count({ ...scope, statuses: ['QUEUED', 'STARTED', 'SUCCEEDED', 'FAILED'] }),
    ]
    const total = Object.values(batch.counts ?? {}).reduce((sum, count) => sum + count, 0)
    if (open > 0 || all === 0 || total !== all)
      this.#violated(`${batch.name} is announced with ${total} jobs; it has ${all}, of which ${open} are open`)
  }

  #violated(what: string): void {
    this.violations.push(`at ${((this.#world.now - 1_700_000_000_000) / 1000).toFixed(1)} s: ${what}`)
  }
}
