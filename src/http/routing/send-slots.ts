import { Shares } from '../../core/engine/limits/shares.js'
import { Problem } from './problem.js'
import type { SendSlot } from './paced-stream.js'

/** Bodies of one kind that are being sent, at a time and in this process. */
export class SendSlots {
  readonly #shares: Shares
  readonly #perApplication: number
  readonly #what: string

  /** @param what as in "At most 50 files" */
  constructor(what: string, bounds: { total: number; perApplication: number }) {
    this.#shares = new Shares(bounds)
    this.#perApplication = bounds.perApplication
    this.#what = what
  }

  /** @throws Problem `RATE_LIMITED` if there is none for the application. */
  take(app: string): SendSlot {
    const lost = new AbortController()
    const end = () =>
      lost.abort(new Error('The answer was ended: other applications needed its slot. Ask for it again, or the rest.'))
    const share = this.#shares.tryTake(app, end)
    if (share) return { lost: lost.signal, release: () => share.release() }
    throw new Problem(
      'RATE_LIMITED',
      `At most ${this.#perApplication} ${this.#what} of an application are sent at a time, and fewer while many ` +
        'applications ask for them. Wait for some to end, then ask for this one again.',
      { headers: { 'retry-after': '5' } },
    )
  }
}
