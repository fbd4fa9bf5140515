import { setImmediate as nextPass } from 'node:timers/promises'
import { earliestPending } from '../job/deliveries.js'
import type { JobRecord } from '../job/job.js'
import type { JobStore } from '../ports/job-store.js'
import type { Logger } from '../ports/logger.js'
import { usageEvent } from './webhook-message.js'
import type { MessageSender } from './message-sender.js'

export interface OutboxPorts {
  jobs: Pick<JobStore, 'deliverable' | 'apply'>
  sender: MessageSender
  logger: Logger
}

export type Outbox = ReturnType<typeof webhookOutbox>

/**
 * Sends the webhook messages that jobs carry. A message is stored in the job's record with the change that it reports,
 * so a crash loses none. A receiver may get a message twice and recognizes it by `webhook-id`. Applications take turns,
 * one message each.
 */
export function webhookOutbox({ jobs, sender, logger }: OutboxPorts) {
  const { lanes } = sender
  /** Applications that have had their turn in this round. */
  const served = new Set<string>()
  /** Jobs that are being handled and are still due. */
  const begunJobs = new Set<string>()
  /** Jobs handled since the last call of `send` that may still be due, for example because the store is unavailable. */
  const stuck = new Set<string>()
  let sending: Promise<number> | undefined
  let again = false
  /** Called when a message was handled, and by each call of `send`. */
  let onChange: () => void = () => {}
  return { send, close }

  /** Sends all due messages. A call during a send makes it check again for due messages. */
  function send(): Promise<number> {
    again = true
    onChange()
    sending ??= sendAllDue().finally(() => (sending = undefined))
    return sending
  }

  /** Aborts the requests in flight; their messages stay due. */
  async function close(): Promise<void> {
    sender.close()
    onChange()
    await sending?.catch(() => {})
  }

  /** A sliding window: a message starts as soon as another was handled, so a slow receiver does not block others. */
  async function sendAllDue(): Promise<number> {
    let running = 0
    let sent = 0
    for (;;) {
      if (again) stuck.clear()
      again = false
      const { released } = lanes
      const changed = new Promise<void>((resolve) => (onChange = resolve))
      const begun = sender.isClosed ? [] : await begin()
      running += begun.length
      for (const sending of begun) {
        void sending.then((count) => {
          sent += count
          running--
          onChange()
        })
      }
      // SQLite answers within the pass: thousands of messages that only have to wait would hold up the event loop.
      if (begun.length > 0) {
        await nextPass()
        continue
      }
      if (running > 0) await Promise.race([released, changed])
      else if (!again || sender.isClosed) return sent
    }
  }

  /** Starts the messages of the applications that are next in turn, while lanes are free. */
  async function begin(): Promise<Promise<number>[]> {
    if (lanes.free === 0) return []
    const begun = await beginRound()
    if (begun.length > 0 || served.size === 0) return begun
    served.clear()
    return await beginRound()
  }

  async function beginRound(): Promise<Promise<number>[]> {
    const known = begunJobs.size + stuck.size
    const due = await jobs.deliverable({
      limit: lanes.free + known,
      perApp: 1 + known,
      exceptApps: [...new Set([...lanes.full, ...served])],
    })
    return due.flatMap((job) => {
      if (begunJobs.has(job.id) || stuck.has(job.id) || served.has(job.app)) return []
      if (!lanes.hasRoom(job.app)) return []
      served.add(job.app)
      begunJobs.add(job.id)
      return [lanes.run(job.app, (signal) => sendNext(job, signal)).then((count) => count ?? 0)]
    })
  }

  /** Never rejects. */
  async function sendNext(job: JobRecord, laneSignal: AbortSignal): Promise<number> {
    const { id, app, trace } = job
    const delivery = earliestPending(job)
    try {
      if (!delivery) return 0
      const { status, workflow, name, batchName, metadata } = job
      const deliveryId = delivery.id
      return await sender.send(
        { app, delivery, about: { jobId: id }, trace },
        {
          async begin(retryInMs) {
            const { attempts } = delivery
            const begun = await jobs.apply(id, { kind: 'beginDelivery', deliveryId, attempts, retryInMs })
            if (!begun) return false
            const facts = { id, status, workflow, name, batchName, metadata }
            return delivery.event === usageEvent ? { ...facts, usage: job.settlement } : facts
          },
          end: (outcome, answered) => jobs.apply(id, { kind: 'endDelivery', deliveryId, outcome, status: answered }),
          defer: (delayMs) => jobs.apply(id, { kind: 'deferDelivery', deliveryId, delayMs }),
        },
        { laneSignal, onWritten: () => begunJobs.delete(id) },
      )
    } catch (error) {
      logger.warn(
        { jobId: id, deliveryId: delivery?.id, err: error },
        'A webhook message could not be handled; its next attempt is due later.',
      )
      return 0
    } finally {
      // The outcome was not written, so the job may still be due.
      if (begunJobs.delete(id)) stuck.add(id)
    }
  }
}
