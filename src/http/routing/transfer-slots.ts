import { Shares } from '../../core/engine/limits/shares.js'
import { Problem } from './problem.js'
import type { TransferSlot } from './paced-stream.js'

/** For what takes up to a few megabytes of memory. */
const usualBounds = { total: 128, perApplication: 16 }

/** Bodies of one kind that are being sent or received, at a time and in this process. */
export class TransferSlots {
  readonly #shares: Shares
  readonly #perApplication: number
  readonly #what: string

  /** @param what as in "At most 50 files" */
  constructor(what: string, bounds = usualBounds) {
    this.#shares = new Shares(bounds)
    this.#perApplication = bounds.perApplication
    this.#what = what
  }

  /** @throws Problem `RATE_LIMITED` if there is none for the application. */
  take(app: string): TransferSlot {
    const lost = new AbortController()
    const end = () => lost.abort(this.#refusal('This one was ended: another application needed its slot.'))
    const share = this.#shares.tryTake(app, end)
    if (share) return { lost: lost.signal, release: () => share.release() }
    throw this.#refusal('Wait for some to end.')
  }

  #refusal(advice: string): Problem {
    return new Problem(
      'RATE_LIMITED',
      `At most ${this.#perApplication} ${this.#what} of an application are transferred at a time, and fewer while ` +
        `many applications need slots. ${advice} Then send this request again.`,
      { headers: { 'retry-after': '5' } },
    )
  }
}
