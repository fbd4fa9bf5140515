import { StemworkError } from '../../../core/engine/errors.js'
import type { JobQueue, QueueSubscription } from '../../../core/engine/ports/job-queue.js'

/** Wakes the workers of one process. */
export function localQueue(): JobQueue {
  const listeners = new Set<Listener>()
  const delayed = new Set<NodeJS.Timeout>()
  /** Whether there is a notification that no listener has been called for. */
  let isPending = false
  let closed = false

  const refuseClosed = () => {
    if (closed) throw new StemworkError('SHUTTING_DOWN', 'The queue was closed. Make a new one to go on.')
  }

  const deliver = () => {
    if (!isPending || closed) return
    for (const listener of listeners) {
      if (listener.running) continue
      isPending = false
      // The one called last waits behind the others.
      listeners.delete(listener)
      listeners.add(listener)
      listener.running = Promise.resolve()
        .then(listener.call)
        .catch(() => {})
        .finally(() => {
          listener.running = undefined
          deliver()
        })
      return
    }
  }

  const notifyNow = () => {
    isPending = true
    deliver()
  }

  return {
    traits: { scope: 'process' },

    async notify({ delayMs = 0 } = {}) {
      refuseClosed()
      if (delayMs <= 0) return notifyNow()
      const timer = setTimeout(() => {
        delayed.delete(timer)
        notifyNow()
      }, delayMs)
      timer.unref()
      delayed.add(timer)
    },

    async subscribe(call): Promise<QueueSubscription> {
      refuseClosed()
      const listener: Listener = { call, running: undefined }
      listeners.add(listener)
      deliver()
      return {
        async stop() {
          listeners.delete(listener)
          await listener.running
        },
      }
    },

    async check() {
      refuseClosed()
    },

    async close() {
      closed = true
      for (const timer of delayed) clearTimeout(timer)
      delayed.clear()
    },
  }
}

interface Listener {
  call(): Promise<void>
  /** The call that is under way. */
  running: Promise<void> | undefined
}
