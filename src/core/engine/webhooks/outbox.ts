import type { Delivery, JobRecord } from '../job/job.js'
import type { JobStore } from '../ports/job-store.js'
import { Lanes } from './lanes.js'
import { jittered, outcomeOf, type PostPorts, postMessage } from './post-message.js'

export interface OutboxPorts extends PostPorts {
  jobs: JobStore
}

/**
 * Sends the webhook messages that jobs carry. A message is stored in the job's record with the change that it reports,
 * so a crash loses none. A receiver may get one twice and recognises it by `webhook-id`.
 */
export class Outbox {
  readonly #ports: OutboxPorts
  readonly #closed = new AbortController()
  #sending: Promise<number> | undefined
  #again = false
  #onAgain: () => void = () => {}

  constructor(ports: OutboxPorts) {
    this.#ports = ports
  }

  /** Sends all due messages. A call while messages are being sent checks again for due ones. */
  send(): Promise<number> {
    this.#again = true
    this.#onAgain()
    this.#sending ??= this.#sendAllDue().finally(() => (this.#sending = undefined))
    return this.#sending
  }

  /** Gives up the requests in flight; their messages stay due. */
  async close(): Promise<void> {
    this.#closed.abort()
    this.#onAgain()
    await this.#sending?.catch(() => {})
  }

  /**
   * A sliding window: a message starts as soon as another one has ended, whatever the slowest receiver does. Each
   * application has a share of it.
   */
  async #sendAllDue(): Promise<number> {
    const { concurrency, concurrencyPerApplication } = this.#ports.options.webhooks
    const lanes = new Lanes(concurrencyPerApplication)
    /**
     * Jobs handled since the last call of `send`: one that stays due, for example because the store is unavailable, is
     * skipped.
     */
    const handled = new Set<string>()
    let sent = 0
    for (;;) {
      if (this.#again) handled.clear()
      this.#again = false
      const room = this.#closed.signal.aborted ? 0 : concurrency - lanes.size
      const due =
        room > 0
          ? await this.#ports.jobs.due('deliverable', room + handled.size + lanes.size, { exceptApps: lanes.full })
          : []
      const begun = due.filter((job) => {
        if (handled.has(job.id) || lanes.size >= concurrency || !lanes.hasRoom(job.app)) return false
        handled.add(job.id)
        lanes.add(
          job.app,
          this.#sendDue(job).then((count) => void (sent += count)),
        )
        return true
      })
      if (begun.length > 0) continue
      if (lanes.size === 0) {
        if (this.#again && !this.#closed.signal.aborted) continue
        return sent
      }
      const again = new Promise<void>((resolve) => (this.#onAgain = resolve))
      if (!this.#again) await Promise.race([lanes.next(), again])
    }
  }

  async #sendDue(job: JobRecord): Promise<number> {
    let sent = 0
    for (const delivery of job.deliveries) {
      if (delivery.outcome !== 'pending' || delivery.nextAttemptAt === null) continue
      try {
        if (await this.#try(job, delivery)) sent++
      } catch (error) {
        this.#ports.logger.warn(
          { jobId: job.id, deliveryId: delivery.id, err: error },
          'A webhook message could not be handled; its next attempt is due later.',
        )
      }
    }
    return sent
  }

  async #try(job: JobRecord, delivery: Delivery): Promise<boolean> {
    const { jobs, options, logger } = this.#ports
    const { retryDelaysMs } = options.webhooks
    const nextDelayMs = retryDelaysMs[delivery.attempts]
    const taken = await jobs.apply(job.id, {
      kind: 'beginDelivery',
      deliveryId: delivery.id,
      attempts: delivery.attempts,
      retryInMs: nextDelayMs === undefined ? null : jittered(nextDelayMs),
    })
    if (!taken) return false
    const { id, status: jobStatus, workflow, name, batchName, metadata } = job
    const data = { id, status: jobStatus, workflow, name, batchName, metadata }
    const message = { app: job.app, delivery, data, about: { jobId: id }, trace: job.trace }
    const status = await postMessage(message, this.#ports, this.#closed.signal)
    const outcome = outcomeOf(status, nextDelayMs === undefined)
    await jobs.apply(job.id, { kind: 'endDelivery', deliveryId: delivery.id, outcome, status })
    if (outcome === 'given_up')
      logger.warn(
        { jobId: job.id, deliveryId: delivery.id, status },
        'A webhook message was given up after its last attempt.',
      )
    return true
  }
}
