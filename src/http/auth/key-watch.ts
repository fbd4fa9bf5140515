import { setMaxListeners } from 'node:events'
import type { ApplicationStore } from '../../core/engine/ports/application-store.js'

/** Interval of looking up a watched key, which another process may have revoked. */
const keyCheckMs = 1000

/** Permission of a long request to continue. */
export interface Permission {
  /** Fires once the sender's key has ended. */
  readonly signal: AbortSignal
  release(): void
}

interface Watched {
  readonly ended: AbortController
  readonly timer: NodeJS.Timeout
  holders: number
}

export type KeyWatch = ReturnType<typeof watchKeys>

/** Tells long requests when their key ends. A key is looked up once a second, however many requests use it. */
export function watchKeys(applications: Pick<ApplicationStore, 'getKey'>) {
  const all = new Map<string, Watched>()
  const watchedKey = (id: string): Watched => {
    const known = all.get(id)
    if (known && !known.ended.signal.aborted) return known
    const ended = new AbortController()
    setMaxListeners(Infinity, ended.signal)
    let isAsked = false
    const check = async () => {
      if (isAsked) return
      isAsked = true
      // A brief outage of the store says nothing about the key.
      const key = await applications.getKey(id).catch(() => null)
      isAsked = false
      if (key === undefined || (key !== null && (key.expiresAt ?? Infinity) <= Date.now())) ended.abort()
    }
    const watched: Watched = { ended, timer: setInterval(() => void check(), keyCheckMs).unref(), holders: 0 }
    all.set(id, watched)
    return watched
  }
  return {
    follow(keyId: string): Permission {
      const watched = watchedKey(keyId)
      watched.holders++
      const release = () => {
        if (--watched.holders > 0) return
        clearInterval(watched.timer)
        if (all.get(keyId) === watched) all.delete(keyId)
      }
      return { signal: watched.ended.signal, release }
    },
  }
}
