import { randomUUID } from 'node:crypto'
import type { JobRecord } from '../job/job.js'
import { hasAmounts, offered, servesPool } from '../job/pool.js'
import type { ClaimRequest } from '../job/transitions.js'
import type { Claimable } from '../ports/job-store.js'
import type { AttemptPorts } from './attempt/attempt-ports.js'
import { claimJobs } from './claim-jobs.js'

/** Most jobs of lost workers to check. */
const mostLapsed = 100

interface ClaimPorts extends Pick<AttemptPorts, 'jobs' | 'contact' | 'options' | 'runnable'> {
  owner: string
  /** The attempts of this process. */
  running: ReadonlyMap<string, { pool: string }>
}

/** Claims jobs for this worker. */
export class JobClaims {
  readonly #ports: ClaimPorts
  /** Whether the last claim was allowed to take jobs of lost workers. The store's answer may allow the next one to. */
  #couldJudge = false

  constructor(ports: ClaimPorts) {
    this.#ports = ports
  }

  /** How many of `room` jobs to claim at once: one if jobs share amounts, which one job may use up. */
  atOnce(room: number): number {
    return hasAmounts(this.#ports.options.dispatch.labels) ? 1 : room
  }

  async named(id: string): Promise<JobRecord | undefined> {
    const [job] = await this.#claim({ id }, async (request) => {
      const found = await this.#ports.jobs.claim(request)
      return found ? [found] : []
    })
    return job
  }

  /** Claims the next jobs, at most `max`. */
  async next(max: number, claimable: Omit<Claimable, 'id' | 'workflows' | 'labels'>): Promise<JobRecord[]> {
    const { jobs, runnable } = this.#ports
    return await this.#claim({ workflows: runnable(), ...claimable }, (request) => claimJobs(jobs, request, max))
  }

  /** Whether jobs of lost workers, which the last claim could not take yet, are suitable for this worker. */
  async hasUnjudged(): Promise<boolean> {
    const { jobs, runnable } = this.#ports
    if (this.#couldJudge) return false
    const [workflows, labels] = [runnable(), this.#offered]
    const lapsed = await jobs.due('lapsed', mostLapsed)
    return lapsed.some(({ workflow, pool }) => workflows.includes(workflow) && servesPool(labels, pool))
  }

  /** Whether no lease is held at all: the store belongs to this process, and no job runs here. */
  get #isAlone(): boolean {
    const { jobs, running } = this.#ports
    return jobs.traits.scope === 'process' && running.size === 0
  }

  /** The labels of this worker, less the amounts that running jobs take. */
  get #offered(): string[] {
    const { options, running } = this.#ports
    return offered(
      options.dispatch.labels,
      [...running.values()].map(({ pool }) => pool),
    )
  }

  async #claim(
    claimable: Omit<Claimable, 'labels'>,
    ask: (request: ClaimRequest & Claimable) => Promise<JobRecord[]>,
  ): Promise<JobRecord[]> {
    const { contact, options, owner } = this.#ports
    // These digits are all random, as from `randomBytes`, which takes ten times as long.
    const nonce = randomUUID().slice(-12)
    const { leaseMs } = options.dispatch
    const labels = this.#offered
    const askedAt = performance.now()
    try {
      const lapsedBefore = this.#isAlone ? undefined : await contact.lapsedBefore()
      this.#couldJudge = lapsedBefore === undefined || contact.isSteady
      const found = await ask({ labels, owner, leaseMs, nonce, lapsedBefore, ...claimable })
      contact.noteAnswer()
      return performance.now() - askedAt < leaseMs ? found : await this.#stillHeld(found)
    } catch (error) {
      contact.noteFailure()
      throw error
    }
  }

  /** Of jobs whose leases ended before the claim was answered, those that no other worker has taken over. */
  async #stillHeld(jobs: readonly JobRecord[]): Promise<JobRecord[]> {
    const { leaseMs } = this.#ports.options.dispatch
    const held: JobRecord[] = []
    for (const { id, token, lease } of jobs) {
      const renewal = { kind: 'heartbeat', token, nonce: lease?.nonce, leaseMs, progress: 0, stage: null } as const
      const job = await this.#ports.jobs.apply(id, renewal)
      if (job) held.push(job)
    }
    return held
  }
}
