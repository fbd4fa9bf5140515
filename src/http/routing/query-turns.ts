import { type Spent, timed } from '../../core/engine/limits/rested.js'
import { Shares } from '../../core/engine/limits/shares.js'
import { type Problem, rateLimited } from './problem.js'

/** Most requests of an application that wait for an earlier one of this kind. */
const mostWaiting = 50
/** Most applications with a slice at a time, which is mostly rest. One is reserved for those that seldom ask. */
const slicesAtOnce = 3

/**
 * Divides the store and the event loop among large requests: one request of an application at a time, in slices for
 * which applications take turns.
 */
export class QueryTurns {
  readonly #requests = new Shares({
    total: Infinity,
    perApplication: 1,
    reserve: 0,
    waitingPerApplication: mostWaiting,
  })
  readonly #slices = new Shares({ total: slicesAtOnce, perApplication: 1, reserve: 1 })

  /** @throws Problem `RATE_LIMITED` if too many requests of the application wait already; the signal's reason */
  async request<Result>(app: string, work: () => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    return await this.#requests.use(app, work, { signal, refusal: tooManyWaiting })
  }

  /** Runs a part of a request that blocks the event loop for a few milliseconds. The next slice waits for its rest. */
  async slice<Result>(app: string, work: (spent?: Spent) => Promise<Result>): Promise<Result> {
    const share = await this.#slices.take(app)
    let rest = 0
    try {
      const { result, restMs } = await timed(work)
      rest = restMs
      return result
    } finally {
      if (rest === 0) share?.release()
      else setTimeout(() => share?.release(), rest)
    }
  }
}

function tooManyWaiting(): Problem {
  return rateLimited(
    'Lists, archives, batches and bulk changes of an application, and documents of the service, are made one at a ' +
      `time, and ${mostWaiting} may wait. Send this request again when others have been answered.`,
    5,
  )
}
