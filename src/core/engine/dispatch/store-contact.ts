import type { JobStore } from '../ports/job-store.js'
import type { StoreClock } from '../store-clock.js'

export interface StoreContactParts {
  jobs: Pick<JobStore, 'traits'>
  clock: Pick<StoreClock, 'time'>
  leaseMs: number
  storageOutageMs: number
}

/** Answers that are further apart, as a share of a lease, may have an outage between them. */
const longestGap = 0.6
/** What a worker gets in addition to its lease, as a share of it: the time in which it tries to reach the store again. */
const grace = 1 / 3

/**
 * Whether this process may judge that a worker is lost. A lease also ends without a renewal when nobody reaches the
 * store. So only a process that has been in touch with it for a whole lease says that the one who was not is lost:
 * after an outage, every worker first has that time to come back.
 *
 * If a lease ended before an outage, or its holder cannot come back, this costs a lease at most. Longer than a worker
 * waits for the store, nobody waits for it.
 */
export class StoreContact {
  readonly #parts: StoreContactParts
  /** By two clocks: one stands still with the machine, the other may be set. */
  #last = { rising: -Infinity, date: -Infinity }
  /** Of `performance.now()`; undefined: the store did not answer the last call, or none was made. */
  #since: number | undefined

  constructor(parts: StoreContactParts) {
    this.#parts = parts
    // Nobody else can hold a lease in such a store.
    if (parts.jobs.traits.scope === 'process') this.noteAnswer(-Infinity)
  }

  /** The store has answered a call. */
  noteAnswer(since = performance.now()): void {
    if (this.#since === undefined || this.#isGap) this.#since = since
    this.#last = { rising: performance.now(), date: Date.now() }
  }

  /** The store did not answer a call. */
  noteFailure(): void {
    this.#since = undefined
  }

  /** When the store last answered, by `performance.now()`. */
  get answeredAt(): number {
    return this.#last.rising
  }

  /** Whether it may judge now. */
  get isSteady(): boolean {
    return this.#since !== undefined && this.#last.rising - this.#since >= this.#parts.leaseMs && !this.#isGap
  }

  /** Whether there may have been an outage since the last answer: this process may have stood still. */
  get #isGap(): boolean {
    const gapMs = Math.max(performance.now() - this.#last.rising, Math.abs(Date.now() - this.#last.date))
    return gapMs > longestGap * this.#parts.leaseMs
  }

  /** When a lease must have ended, in the store's time, for its job to be taken over. @throws the store's error. */
  async lapsedBefore(): Promise<number> {
    const { clock, leaseMs, storageOutageMs } = this.#parts
    const now = await clock.time()
    return now - (this.isSteady ? grace * leaseMs : storageOutageMs)
  }
}
