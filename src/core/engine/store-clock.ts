import type { JobStore } from './ports/job-store.js'

/** A node whose clock differs from the store's by more than this is set wrong. */
const mostSkewMs = 60_000
/** Clocks drift by some milliseconds in this time. */
const believedMs = 10 * 60_000

interface Reading {
  storeTime: number
  /** By `performance.now()`, when the answer came. */
  at: number
  /** How old `storeTime` may have been by then. */
  uncertainMs: number
}

/**
 * The store's time. Whatever is compared with times in records or decides what is removed uses it, so the date of a
 * node does not matter. Between readings it advances by a monotonic clock. It may be late, after the process or its
 * machine was suspended, but never early: whatever waits for a time waits long enough.
 */
export class StoreClock {
  readonly #jobs: Pick<JobStore, 'time' | 'traits'>
  #reading: Reading | undefined

  constructor(jobs: Pick<JobStore, 'time' | 'traits'>) {
    this.#jobs = jobs
  }

  /** Epoch milliseconds. @throws the store's error, when its time is not known yet or was read long ago. */
  async time(): Promise<number> {
    const known = this.#reading
    const isFresh = known && performance.now() - known.at < believedMs
    return storeTimeNow(isFresh ? known : await this.#read())
  }

  /** What the store says now. @throws the store's error. */
  async read(): Promise<number> {
    return storeTimeNow(await this.#read())
  }

  /**
   * How far this node's clock is ahead of the store's (below 0: behind), if it is set wrong. @throws the store's error.
   */
  async wrongBy(): Promise<number | undefined> {
    // Such a store has no clock but this node's.
    if (this.#jobs.traits.scope === 'process') return undefined
    if (this.#reading && !isWrong(this.#reading)) return undefined
    const reading = await this.#read()
    return isWrong(reading) ? Date.now() - storeTimeNow(reading) : undefined
  }

  async #read(): Promise<Reading> {
    const askedAt = performance.now()
    const storeTime = await this.#jobs.time()
    const at = performance.now()
    const reading = { storeTime, at, uncertainMs: at - askedAt }
    if (this.#jobs.traits.scope === 'shared') this.#reading = reading
    return reading
  }
}

/** What an operator should know about this node's clock. @throws the store's error. */
export async function clockProblem(clock: Pick<StoreClock, 'wrongBy'>): Promise<string | undefined> {
  const wrongBy = await clock.wrongBy()
  if (wrongBy === undefined) return undefined
  const seconds = Math.round(Math.abs(wrongBy) / 1000)
  return (
    `The clock of this node is ${seconds} s ${wrongBy > 0 ? 'ahead of' : 'behind'} that of the job store. It runs ` +
    'jobs, but sweeps nothing; its links and API keys end at wrong times. Set the clock (NTP).'
  )
}

function storeTimeNow({ storeTime, at }: Reading): number {
  return storeTime + Math.floor(performance.now() - at)
}

function isWrong(reading: Reading): boolean {
  return Math.abs(Date.now() - storeTimeNow(reading)) > mostSkewMs + reading.uncertainMs
}
