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

/**
 * Sends the webhook messages that jobs carry. A message is stored in the job's record with the change that it reports,
 * so a crash loses none. A receiver may get one twice and recognises it by `webhook-id`. Applications take turns, one
 * message each.
 */
export class Outbox {
  readonly #ports: OutboxPorts
  /** Applications that have had their turn in this round. */
  readonly #served = new Set<string>()
  /** Jobs that are being handled and are still due. */
  readonly #begun = new Set<string>()
  /** Jobs that stay due although they were handled since the last call of `send`, as when the store is unavailable. */
  readonly #stuck = new Set<string>()
  #sending: Promise<number> | undefined
  #again = false
  /** Called when a message has ended, and by each call of `send`. */
  #onChange: () => void = () => {}

  constructor(ports: OutboxPorts) {
    this.#ports = ports
  }

  /** Sends all due messages. A call while messages are being sent checks again for due ones. */
  send(): Promise<number> {
    this.#again = true
    this.#onChange()
    this.#sending ??= this.#sendAllDue().finally(() => (this.#sending = undefined))
    return this.#sending
  }

  /** Gives up the requests in flight; their messages stay due. */
  async close(): Promise<void> {
    this.#ports.sender.close()
    this.#onChange()
    await this.#sending?.catch(() => {})
  }

  /** A sliding window: a message starts as soon as another one has ended, whatever the slowest receiver does. */
  async #sendAllDue(): Promise<number> {
    const { sender } = this.#ports
    let running = 0
    let sent = 0
    for (;;) {
      if (this.#again) this.#stuck.clear()
      this.#again = false
      const { released } = sender.lanes
      const changed = new Promise<void>((resolve) => (this.#onChange = resolve))
      const begun = sender.isClosed ? [] : await this.#begin()
      running += begun.length
      for (const sending of begun) {
        void sending.then((count) => {
          sent += count
          running--
          this.#onChange()
        })
      }
      if (begun.length > 0) continue
      if (running > 0) await Promise.race([released, changed])
      else if (!this.#again || sender.isClosed) return sent
    }
  }

  /** Starts with the messages whose turn it is, as far as lanes are free. */
  async #begin(): Promise<Promise<number>[]> {
    const { lanes } = this.#ports.sender
    if (lanes.free === 0) return []
    const begun = await this.#beginRound()
    if (begun.length > 0 || this.#served.size === 0) return begun
    this.#served.clear()
    return await this.#beginRound()
  }

  async #beginRound(): Promise<Promise<number>[]> {
    const { jobs, sender } = this.#ports
    const { lanes } = sender
    const known = this.#begun.size + this.#stuck.size
    const due = await jobs.deliverable({
      limit: lanes.free + known,
      perApp: 1 + known,
      exceptApps: [...new Set([...lanes.full, ...this.#served])],
    })
    return due.flatMap((job) => {
      if (this.#begun.has(job.id) || this.#stuck.has(job.id) || this.#served.has(job.app)) return []
      if (!lanes.hasRoom(job.app)) return []
      this.#served.add(job.app)
      this.#begun.add(job.id)
      return [lanes.run(job.app, (signal) => this.#sendNext(job, signal)).then((count) => count ?? 0)]
    })
  }

  /** Never rejects. */
  async #sendNext(job: JobRecord, laneSignal: AbortSignal): Promise<number> {
    const { jobs, sender, logger } = this.#ports
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
        { laneSignal, onWritten: () => this.#begun.delete(id) },
      )
    } catch (error) {
      logger.warn(
        { jobId: id, deliveryId: delivery?.id, err: error },
        'A webhook message could not be handled; its next attempt is due later.',
      )
      return 0
    } finally {
      // Not written: it may still be due.
      if (this.#begun.delete(id)) this.#stuck.add(id)
    }
  }
}
