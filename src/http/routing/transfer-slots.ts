import { Shares } from '../../core/engine/limits/shares.js'
import { rateLimited } from './problem.js'
import type { TransferSlot } from './paced-stream.js'

/** For what takes up to a few megabytes of memory. */
const usualBounds = { total: 128, perApplication: 16 }

export type TransferSlots = ReturnType<typeof transferSlots>

/**
 * Bodies of one kind that are being sent or received, at a time and in this process.
 *
 * @param what as in "At most 50 files"
 */
export function transferSlots(what: string, bounds = usualBounds) {
  const shares = new Shares(bounds)
  const refusal = (advice: string) =>
    rateLimited(
      `At most ${bounds.perApplication} ${what} of an application are transferred at a time, and fewer while ` +
        `many applications need slots. ${advice} Then send this request again.`,
      5,
    )
  return {
    /** @throws Problem `RATE_LIMITED` if there is none for the application. */
    take(app: string): TransferSlot {
      const lost = new AbortController()
      const end = () => lost.abort(refusal('This one was ended: another application needed its slot.'))
      const share = shares.tryTake(app, end)
      if (share) return { lost: lost.signal, release: () => share.release() }
      throw refusal('Wait for some to end.')
    },
  }
}
