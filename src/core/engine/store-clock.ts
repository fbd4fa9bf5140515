import type { JobStore } from './ports/job-store.js'

/** A node's clock that differs from the store's by more than this is set wrong. */
const mostSkewMs = 60_000
/** In this time, clocks drift by a few milliseconds only. */
const believedMs = 10 * 60_000

interface Reading {
  storeTime: number
  /** `performance.now()` when the answer arrived. */
  at: number
  /** How old `storeTime` may have been by then. */
  uncertainMs: number
}

/**
 * The store's time. All comparisons with times in records and all decisions on removal use it, so the date of a node
 * does not matter. Between readings it advances by a monotonic clock. It may lag after the process or its machine was
 * suspended, but is never ahead: whatever waits for a time waits long enough.
 */
export class StoreClock {
  readonly #jobs: Pick<JobStore, 'time' | 'traits'>
  #reading: Reading | undefined

  constructor(jobs: Pick<JobStore, 'time' | 'traits'>) {
    this.#jobs = jobs
  }

  /** Epoch milliseconds. @throws the store's error, if its time was not read yet or too long ago. */
  async time(): Promise<number> {
    const known = this.#reading
    const isFresh = known && performance.now() - known.at < believedMs
    return storeTimeNow(isFresh ? known : await this.#read())
  }

  /** Reads the time from the store now. @throws the store's error. */
  async read(): Promise<number> {
    return storeTimeNow(await this.#read())
  }

  /** How far a wrongly set clock of this node is ahead of the store's (negative: behind). @throws the store's error. */
  async wrongBy(): Promise<number | undefined> {
    // The clock of such a store is this node's.
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

/** Describes a wrongly set clock of this node to an operator. @throws the store's error. */
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
