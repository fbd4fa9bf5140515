import type { Lock, Locker } from '@tus/server'
import { conflict } from '../routing/problem.js'

interface Holder {
  /** Asks the request to release the lock, after storing what it has received. */
  requestRelease(): Promise<void> | void
  released: Promise<void>
  release(): void
}

/**
 * Admits one request at a time for each upload of this process. A later request ends the earlier one, which is most
 * often a broken connection that this side has not noticed yet.
 */
export class UploadLocks implements Locker {
  readonly #holders = new Map<string, Holder>()

  newLock(id: string): Lock {
    let own: Holder | undefined
    return {
      lock: async (signal, requestRelease) => {
        for (let holder = this.#holders.get(id); holder; holder = this.#holders.get(id)) {
          await holder.requestRelease()
          await Promise.race([holder.released, aborted(signal)])
        }
        let release = () => {}
        const released = new Promise<void>((resolve) => (release = resolve))
        own = { requestRelease, released, release }
        this.#holders.set(id, own)
      },
      unlock: async () => {
        if (own && this.#holders.get(id) === own) this.#holders.delete(id)
        own?.release()
      },
    }
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const refuse = () => reject(conflict('Another request is continuing this upload. Ask for its offset.'))
    if (signal.aborted) refuse()
    signal.addEventListener('abort', refuse, { once: true })
  })
}
