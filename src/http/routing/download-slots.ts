import { Shares } from '../../core/engine/limits/shares.js'
import { Problem } from './problem.js'
import type { DownloadSlot } from './paced-stream.js'

/** The files that are being sent by signed links, at a time and in this process. */
export class DownloadSlots {
  readonly #shares: Shares
  readonly #perApplication: number

  constructor(bounds: { total: number; perApplication: number }) {
    this.#shares = new Shares(bounds)
    this.#perApplication = bounds.perApplication
  }

  /** @throws Problem `RATE_LIMITED` if there is none for the application. */
  take(app: string): DownloadSlot {
    const lost = new AbortController()
    const end = () =>
      lost.abort(new Error('The download was ended: other applications needed its slot. A range request goes on.'))
    const share = this.#shares.tryTake(app, end)
    if (share) return { lost: lost.signal, release: () => share.release() }
    throw new Problem(
      'RATE_LIMITED',
      `At most ${this.#perApplication} files of an application are sent at a time, and fewer while many applications ` +
        'download. Wait for some to end, then ask for this one again.',
      { headers: { 'retry-after': '5' } },
    )
  }
}
