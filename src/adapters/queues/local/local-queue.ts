import PQueue from 'p-queue'
import type { JobQueue, JobReference, QueueSubscription } from '../../../core/engine/ports/job-queue.js'
import { type FairOptions, FairQueue } from './fair-queue.js'

/** The doorbell of one process: p-queue with applications taking turns. Rings before the first subscription are kept. */
export function localQueue(): JobQueue {
  const queue = new PQueue<FairQueue, FairOptions>({ concurrency: 1, autoStart: false, queueClass: FairQueue })
  const delayed = new Set<NodeJS.Timeout>()
  let handle: ((reference: JobReference) => Promise<void>) | undefined
  let closed = false

  const enqueue = (reference: JobReference) => {
    if (closed) return
    // The handler is looked up when the turn comes: the reference may have been waiting since before the subscription.
    void queue.add(() => handle?.(reference) ?? Promise.resolve(), { app: reference.app }).catch(() => {})
  }

  return {
    traits: { scope: 'process' },

    async publish(reference, { delayMs = 0 } = {}) {
      if (delayMs <= 0) return enqueue(reference)
      const timer = setTimeout(() => {
        delayed.delete(timer)
        enqueue(reference)
      }, delayMs)
      timer.unref()
      delayed.add(timer)
    },

    async subscribe(handler, { concurrency }): Promise<QueueSubscription> {
      if (handle) throw new TypeError('The local queue has one subscriber already: use one engine a queue.')
      handle = handler
      queue.concurrency = concurrency
      queue.start()
      return {
        async stop() {
          queue.pause()
          await queue.onPendingZero()
          handle = undefined
        },
      }
    },

    async depth() {
      return queue.size + delayed.size
    },

    async close() {
      closed = true
      queue.pause()
      queue.clear()
      for (const timer of delayed) clearTimeout(timer)
      delayed.clear()
    },
  }
}
