import type { JobStore } from '../ports/job-store.js'
import type { StoreClock } from '../store-clock.js'

export interface StoreContactParts {
  jobs: Pick<JobStore, 'traits'>
  clock: Pick<StoreClock, 'time'>
  leaseMs: number
  storageOutageMs: number
}

/** As a share of a lease: a longer gap between two answers may hide an outage. */
const longestGap = 0.6
/** Share of a lease: grace after its end, in which its worker tries to reach the store again. */
const grace = 1 / 3

/**
 * Decides whether this process may declare a worker lost. Leases also expire when no worker can reach the store. So
 * only a process that has been in contact with the store for a whole lease may do so: after an outage, every worker
 * first gets that long to reconnect.
 *
 * If a lease ended before the outage, or its holder cannot return, this delays the takeover by one lease at most. No
 * lost worker is awaited longer than the store itself (`storageOutageMs`).
 */
export class StoreContact {
  readonly #parts: StoreContactParts
  /** The last answer, by two clocks: the monotonic one may stop while the machine sleeps, the other may be set. */
  #last = { rising: -Infinity, date: -Infinity }
  /** Start of unbroken contact, by `performance.now()`; `undefined`: the last call failed, or none was made. */
  #since: number | undefined

  constructor(parts: StoreContactParts) {
    this.#parts = parts
    // No other process can hold a lease in such a store.
    if (parts.jobs.traits.scope === 'process') this.noteAnswer(-Infinity)
  }

  /** Call when the store has answered. */
  noteAnswer(since = performance.now()): void {
    if (this.#since === undefined || this.#isGap) this.#since = since
    this.#last = { rising: performance.now(), date: Date.now() }
  }

  /** Call when the store did not answer. */
  noteFailure(): void {
    this.#since = undefined
  }

  /** When the store last answered, by `performance.now()`. */
  get answeredAt(): number {
    return this.#last.rising
  }

  /** Whether this process may declare a worker lost now. */
  get isSteady(): boolean {
    return this.#since !== undefined && this.#last.rising - this.#since >= this.#parts.leaseMs && !this.#isGap
  }

  /** Whether there may have been an outage since the last answer: this process may have been suspended. */
  get #isGap(): boolean {
    const gapMs = Math.max(performance.now() - this.#last.rising, Math.abs(Date.now() - this.#last.date))
    return gapMs > longestGap * this.#parts.leaseMs
  }

  /** Jobs whose leases ended before this store time may be taken over. @throws the store's error. */
  async lapsedBefore(): Promise<number> {
    const { jobs, clock, leaseMs, storageOutageMs } = this.#parts
    const now = await clock.time()
    if (this.isSteady) return now - grace * leaseMs
    // The only process of a store was suspended, or its clock was set: its jobs still run, and renew their leases.
    return jobs.traits.scope === 'process' ? 0 : now - storageOutageMs
  }
}
