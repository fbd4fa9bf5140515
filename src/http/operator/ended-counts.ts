import { rested } from '../../core/engine/limits/rested.js'
import { mostCounted } from '../../core/engine/job/most-counted.js'
import type { HttpEngine } from '../http-engine.js'
import type { Overview } from './answers.js'

type Rate = Overview['rates'][number]

const stepMs = 5 * 60_000
const steps = 12
/** For so long a step that is over is not counted again: deleted and retried jobs leave it. */
const keptMs = 60_000

/** How many jobs of the whole store have ended, by steps of five minutes of the last hour. */
export class EndedCounts {
  readonly #engine: Pick<HttpEngine, 'count'>
  #kept = new Map<number, Rate>()
  #keptSince = 0

  constructor(engine: Pick<HttpEngine, 'count'>) {
    this.#engine = engine
  }

  async read(at: number): Promise<Rate[]> {
    if (at - this.#keptSince >= keptMs) {
      this.#kept = new Map()
      this.#keptSince = at
    }
    const end = Math.ceil(at / stepMs) * stepMs
    const rates: Rate[] = []
    // One after the other, with rests: stores in memory look at every job.
    for (let from = end - steps * stepMs; from < end; from += stepMs) {
      const rate = this.#kept.get(from) ?? (await rested(() => this.#count(from)))
      if (from + stepMs <= at) this.#kept.set(from, rate)
      rates.push(rate)
    }
    return rates
  }

  async #count(from: number): Promise<Rate> {
    const ended = (status: 'SUCCEEDED' | 'FAILED') => {
      const query = { statuses: [status], completedAfter: from, completedBefore: from + stepMs }
      return this.#engine.count(query, { max: mostCounted })
    }
    const [succeeded, failed] = [await ended('SUCCEEDED'), await ended('FAILED')]
    return { from, succeeded, failed, isMore: Math.max(succeeded, failed) >= mostCounted }
  }
}
