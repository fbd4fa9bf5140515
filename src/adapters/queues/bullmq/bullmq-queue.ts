import { randomUUID } from 'node:crypto'
import { Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import { invalidOptions, requireOption, StemworkError, storeUnavailable } from '../../../core/engine/errors.js'
import type { JobQueue, QueueSubscription } from '../../../core/engine/ports/job-queue.js'
import { defaultLogger, type Logger, steadyLogger } from '../../../core/engine/ports/logger.js'
import { type RedisAddress, redisConnections } from './redis-connections.js'
import { subscribe } from './subscription.js'
import { coalesced } from '../../shared/coalesced.js'
import { within } from '../../../core/engine/ports/within.js'

export interface BullmqQueueOptions {
  /**
   * Redis 6.2 or later, or Valkey: an ioredis connection or options for one, or a `redis://` URL. A connection remains
   * the host's; the queue duplicates it and closes the duplicates.
   */
  connection: RedisAddress
  /** BullMQ's name of the queue, without `:`. Default: `stemwork`. */
  name?: string
  /** Prefix of all keys. Default: BullMQ's, `bull`. */
  prefix?: string
  /** How long Redis may take to answer before a call fails. Default: 5000. */
  answerTimeoutMs?: number
  /** Default: warnings and errors go to stderr. */
  logger?: Logger
}

interface Publisher {
  redis: Redis
  queue: Queue
}

/** Tried once and then removed: the sweep finds jobs whose notification was missed. */
const jobOptions = { attempts: 1, removeOnComplete: true, removeOnFail: true }

/**
 * Wakes the workers of many processes, on BullMQ. While a notification waits in Redis, none is added, as its taker sees
 * everything that happened before: nothing piles up, and a wiped Redis costs only time. Connects at the first use.
 *
 * @example
 * const queue = bullmqQueue({ connection: { host: 'redis.internal' } })
 * const engine = createEngine({ jobs, applications, blobs, queue })
 * @throws StemworkError `INVALID_OPTIONS`.
 */
export function bullmqQueue(options: BullmqQueueOptions): JobQueue {
  const isGiven = Boolean(options?.connection)
  requireOption(isGiven, options, "bullmqQueue({ connection: 'redis://127.0.0.1' })", 'the address of a Redis')
  const { connection, name = 'stemwork', prefix = 'bull', answerTimeoutMs = 5000 } = options
  const logger = steadyLogger(options.logger ?? defaultLogger)
  if (!/^[^:]+$/.test(name))
    throw invalidOptions(
      `${JSON.stringify(name)} is not a queue name. Expected a text without ":", which separates the parts of ` +
        'Redis keys.',
    )

  const connections = redisConnections(connection, { name, logger })
  const onError = (error: unknown) => connections.report(error)
  const subscriptions = new Set<QueueSubscription>()
  let publisher: Publisher | undefined
  let closed = false
  const notifyNow = coalesced(() => answered(addIfNoneWaits))

  return {
    traits: { scope: 'shared' },

    async notify({ delayMs = 0 } = {}) {
      refuseClosed()
      await (delayMs > 0 ? answered(() => add(Math.round(delayMs))) : notifyNow())
    },

    async subscribe(listener) {
      refuseClosed()
      const subscription = subscribe(listener, {
        name,
        prefix,
        connections,
        answerTimeoutMs,
        logger,
        passOn: () => answered(() => add(0)),
      })
      subscriptions.add(subscription)
      return subscription
    },

    async check() {
      refuseClosed()
      await answered(waiting)
    },

    async close() {
      if (closed) return
      closed = true
      await Promise.all([...subscriptions].map((subscription) => subscription.stop()))
      await publisher?.queue.close().catch(onError)
      publisher?.redis.disconnect()
    },
  }

  async function addIfNoneWaits(): Promise<void> {
    if ((await waiting()) === 0) await add(0)
  }

  async function waiting(): Promise<number> {
    const { queue } = await connected()
    return await queue.getWaitingCount()
  }

  async function add(delay: number): Promise<void> {
    const { queue } = await connected()
    // A unique ID for each: BullMQ drops known ones.
    await queue.add('notification', {}, { ...jobOptions, jobId: randomUUID(), delay })
  }

  function publishing(): Publisher {
    if (publisher) return publisher
    const redis = connections.publishing(answerTimeoutMs)
    const queue = new Queue(name, { connection: redis, prefix, streams: { events: { maxLen: 100 } } })
    queue.on('error', onError)
    return (publisher = { redis, queue })
  }

  /** Waits for the first connection, within the time limit; later calls fail at once while the connection is lost. */
  async function connected(): Promise<Publisher> {
    const current = publishing()
    const ready = current.queue.waitUntilReady().catch((error: unknown) => {
      // BullMQ does not retry after a failed start; the next call does.
      if (publisher === current) {
        publisher.redis.disconnect()
        publisher = undefined
      }
      throw error
    })
    await within(ready, answerTimeoutMs, noAnswer)
    return current
  }

  async function answered<Value>(call: () => Promise<Value>): Promise<Value> {
    try {
      return await within(call(), answerTimeoutMs, noAnswer)
    } catch (error) {
      throw storeUnavailable(
        'Redis did not answer the queue. Try again. If this continues, check the cause and the server.',
        { retryable: true, cause: connections.problem ?? error },
      )
    }
  }

  function noAnswer(): Error {
    return new Error(`No answer within ${answerTimeoutMs} ms.`)
  }

  function refuseClosed(): void {
    if (closed) throw new StemworkError('SHUTTING_DOWN', 'The queue was closed. Create a new one.')
  }
}
