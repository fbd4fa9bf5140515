import PQueue from 'p-queue'
import { StemworkError } from '../../../core/engine/errors.js'
import type { JobQueue, QueueSubscription } from '../../../core/engine/ports/job-queue.js'

/** Wakes the workers of one process, on p-queue: a notification waits there until a listener is free. */
export function memoryQueue(): JobQueue {
  const queue = new PQueue({ concurrency: 1, autoStart: false })
  const subscribers = new Set<Subscriber>()
  /** Subscribers whose last call has returned, the longest idle first. */
  const free = new Set<Subscriber>()
  const delayed = new Set<NodeJS.Timeout>()
  let closed = false

  /** As many calls at once as subscribers, so one of them is free whenever a call begins. */
  const adjust = () => {
    queue.concurrency = Math.max(subscribers.size, 1)
    if (subscribers.size > 0 && !closed) queue.start()
    else queue.pause()
  }

  const callNext = async () => {
    for (const subscriber of free) {
      free.delete(subscriber)
      subscriber.running = subscriber.listener().catch(() => {})
      await subscriber.running
      if (subscribers.has(subscriber)) free.add(subscriber)
      else adjust()
      return
    }
  }

  const notifyNow = () => {
    // A call that is queued already begins later, which is enough.
    if (queue.size === 0) void queue.add(callNext).catch(() => {})
  }

  const refuseClosed = () => {
    if (closed) throw new StemworkError('SHUTTING_DOWN', 'The queue was closed. Create a new one.')
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

    async subscribe(listener): Promise<QueueSubscription> {
      refuseClosed()
      const subscriber: Subscriber = { listener: async () => await listener(), running: undefined }
      subscribers.add(subscriber)
      free.add(subscriber)
      adjust()
      return {
        async stop() {
          subscribers.delete(subscriber)
          // A busy subscriber keeps its slot in p-queue until its call returns.
          if (free.delete(subscriber)) adjust()
          await subscriber.running
        },
      }
    },

    async check() {
      refuseClosed()
    },

    async close() {
      closed = true
      adjust()
      queue.clear()
      for (const timer of delayed) clearTimeout(timer)
      delayed.clear()
    },
  }
}

interface Subscriber {
  listener: () => Promise<void>
  /** The last call, running or ended. */
  running: Promise<void> | undefined
}
