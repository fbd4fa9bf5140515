import type { Queue, QueueAddOptions } from 'p-queue'

type Run = () => Promise<unknown>

export interface FairOptions extends QueueAddOptions {
  /** Whose turn this is. */
  app?: string
}

/**
 * A queue class for p-queue in which applications take turns: first in, first out within one application, round-robin between
 * them, so that a thousand jobs of one do not keep another's single job waiting.
 */
export class FairQueue implements Queue<Run, FairOptions> {
  /** In turn order: a Map iterates in insertion order, and an application that was served is inserted again at the end. */
  readonly #waiting = new Map<string, Lane>()
  #size = 0

  get size(): number {
    return this.#size
  }

  enqueue(run: Run, options?: Partial<FairOptions>): void {
    const app = options?.app ?? ''
    const lane = this.#waiting.get(app)
    if (lane) lane.runs.push(run)
    else this.#waiting.set(app, { runs: [run], head: 0 })
    this.#size++
  }

  dequeue(): Run | undefined {
    for (const [app, lane] of this.#waiting) {
      const run = lane.runs[lane.head++]
      // Alone in the queue, an application keeps its place: no need to move it behind nobody.
      if (lane.head === lane.runs.length) this.#waiting.delete(app)
      else if (this.#waiting.size > 1) {
        this.#waiting.delete(app)
        this.#waiting.set(app, lane)
      }
      this.#size--
      return run
    }
    return undefined
  }

  filter(options: Readonly<Partial<FairOptions>>): Run[] {
    const lane = this.#waiting.get(options.app ?? '')
    return lane ? lane.runs.slice(lane.head) : []
  }

  /** Part of p-queue's interface; turns are taken by application, so there are no priorities to set. */
  setPriority(): void {
    throw new TypeError('The job queue has no priorities: applications take turns.')
  }
}

interface Lane {
  runs: Run[]
  /** Index of the next run; the served prefix goes with the lane. */
  head: number
}
