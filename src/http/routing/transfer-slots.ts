import { Shares } from '../../core/engine/limits/shares.js'
import { rateLimited } from './problem.js'
import type { TransferSlot } from './paced-stream.js'

/** Bounds for bodies that each take up to a few megabytes of memory. */
const usualBounds = { total: 128, perApplication: 16 }

export type TransferSlots = ReturnType<typeof transferSlots>

/**
 * Slots for bodies of one kind that this process sends or receives at a time.
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
    /** @throws Problem `RATE_LIMITED` if no slot is left for the application. */
    take(app: string): TransferSlot {
      const lost = new AbortController()
      const end = () => lost.abort(refusal('This one was ended: another application needed its slot.'))
      const share = shares.tryTake(app, end)
      if (share) return { lost: lost.signal, release: () => share.release() }
      throw refusal('Wait for some to end.')
    },
  }
}
