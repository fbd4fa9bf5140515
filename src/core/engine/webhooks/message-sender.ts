import type { Delivery } from '../job/job.js'
import type { JobStore } from '../ports/job-store.js'
import { Lanes } from './lanes.js'
import { jittered, type Message, outcomeOf, type PostPorts, postMessage } from './post-message.js'
import { receiverBreakers } from './receivers.js'
import { secretKey } from './signature.js'
import type { SharedParts } from '../engine-parts.js'

interface SenderPorts extends PostPorts, Pick<SharedParts, 'applications' | 'events'> {
  jobs: Pick<JobStore, 'documents'>
}

/** The changes that a sender makes to the record that carries a message. */
export interface MessageCarrier {
  /** Claims the next attempt. @returns the data to send; false if another process has the attempt */
  begin(retryInMs: number | null): Promise<object | false>
  end(outcome: Delivery['outcome'], status: number | null): Promise<unknown>
  /** Postpones the next attempt without counting one. */
  defer(delayMs: number): Promise<unknown>
}

/** Delay after which a message that lost its lane is due again. */
const againAfterMs = 5000

export type MessageSender = ReturnType<typeof messageSender>

/**
 * Sends webhook messages of jobs and batches, one attempt at a time, within lanes and circuit breakers.
 *
 * @throws StemworkError `INVALID_OPTIONS` for a service's secret of another form
 */
export function messageSender(ports: SenderPorts, post = postMessage) {
  const { secret } = ports.options.webhooks
  if (secret !== undefined) secretKey(secret)
  const lanes = new Lanes(ports.options.webhooks)
  const receivers = receiverBreakers({ ...ports, documents: ports.jobs.documents })
  const closed = new AbortController()
  return {
    lanes,
    receivers,
    get isClosed() {
      return closed.signal.aborted
    },
    /** Aborts the requests in flight; their messages stay due. */
    close: () => closed.abort(),
    send,
  }

  /**
   * Makes the next attempt, if the receiver's breaker admits it. Calls `onWritten` once the message is no longer due.
   *
   * @param laneSignal fires when the message loses its lane
   * @returns the number of requests made
   */
  async function send(
    message: Omit<Message, 'data' | 'application'>,
    carrier: MessageCarrier,
    { laneSignal, onWritten }: { laneSignal: AbortSignal; onWritten?: () => void },
  ): Promise<number> {
    const { app, delivery } = message
    const target = { app, url: delivery.url }
    const admitted = await receivers.admit(target)
    if (admitted.kind === 'wait' || admitted.kind === 'disabled') {
      if (admitted.kind === 'wait') await carrier.defer(jittered(admitted.delayMs))
      else await carrier.end('given_up', delivery.lastStatus)
      onWritten?.()
      return 0
    }
    // Before the attempt counts: if it cannot be read, that says nothing about the receiver.
    const application = await ports.applications.getApplication(app)
    const nextDelayMs = ports.options.webhooks.retryDelaysMs[delivery.attempts]
    const data = await carrier.begin(nextDelayMs === undefined ? null : jittered(nextDelayMs))
    if (!data) return 0
    onWritten?.()
    const signal = AbortSignal.any([closed.signal, laneSignal])
    const status = await post({ ...message, data, application }, ports, signal)
    if (status === null && signal.aborted) {
      // Aborted by this side, so it is not a failure of the receiver.
      await carrier.defer(jittered(againAfterMs))
      return 1
    }
    const outcome = outcomeOf(status, nextDelayMs === undefined)
    await carrier.end(outcome, status)
    if (outcome === 'delivered') await receivers.succeeded(target)
    else await receivers.failed(target, status)
    if (outcome === 'given_up')
      ports.logger.warn(
        { app, ...message.about, deliveryId: delivery.id, status },
        'A webhook message was given up after its last attempt.',
      )
    return 1
  }
}
