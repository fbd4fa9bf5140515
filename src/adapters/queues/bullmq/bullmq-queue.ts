import { randomUUID } from 'node:crypto'
import { Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import { StemworkError } from '../../../core/engine/errors.js'
import type { JobQueue, JobReference, QueueSubscription } from '../../../core/engine/ports/job-queue.js'
import { type Logger, silentLogger } from '../../../core/engine/ports/logger.js'
import { batched } from '../../stores/shared/batched.js'
import { type RedisAddress, RedisConnections } from './redis-connections.js'
import { gathered, type Ring } from './notifications.js'
import { subscribe } from './subscription.js'
import { within } from './time-limit.js'
import { takeTurns } from './turns.js'

export interface BullmqQueueOptions {
  /**
   * Redis 6.2 or later, or Valkey: an ioredis connection or options for one, or a `redis://` URL. A connection stays the host's;
   * the queue makes its own after its model and closes those.
   */
  connection: RedisAddress
  /** BullMQ's name of the queue, without `:`. Default: `stemwork`. */
  name?: string
  /** Prefix of all keys. Default: BullMQ's, `bull`. */
  prefix?: string
  /** Whether applications take turns. Without it, references are served first in, first out. Default: true. */
  fairness?: boolean
  /** How long Redis may take to answer before a call fails. Default: 5000. */
  answerTimeoutMs?: number
  logger?: Logger
}

interface Publisher {
  redis: Redis
  queue: Queue
}

interface Publication {
  reference: JobReference
  delayMs: number
}

/** One attempt, for retries are the engine's; nothing is kept of what was delivered, for the store knows. */
const ringOptions = { attempts: 1, removeOnComplete: true, removeOnFail: true }

/**
 * The doorbell of many processes, on BullMQ: it carries references, at least once while Redis keeps its data, and the sweep
 * rings again for what a wiped Redis forgot. Nothing is connected before the first use.
 *
 * @example
 * const queue = bullmqQueue({ connection: { host: 'redis.internal' } })
 * const engine = createEngine({ jobs, applications, blobs, queue })
 * @throws StemworkError `INVALID_OPTIONS`.
 */
export function bullmqQueue(options: BullmqQueueOptions): JobQueue {
  const {
    connection,
    name = 'stemwork',
    prefix = 'bull',
    fairness = true,
    answerTimeoutMs = 5000,
    logger = silentLogger,
  } = options
  if (!/^[^:]+$/.test(name))
    throw new StemworkError(
      'INVALID_OPTIONS',
      `${JSON.stringify(name)} is not a queue name. Expected a text without ":", which separates the parts of Redis keys.`,
    )

  const onError = (error: unknown) =>
    logger.warn({ queue: name, error }, 'The connection of the queue to Redis has a problem.')
  const connections = new RedisConnections(connection, onError)
  const subscriptions = new Set<QueueSubscription>()
  let publisher: Publisher | undefined
  let closed = false

  const publish = batched((publications: Publication[]) => answered(() => publishAll(publications)), {
    maxItems: 1000,
    parallel: 2,
  })

  return {
    traits: { scope: 'shared' },

    async publish({ id, app }, { delayMs = 0 } = {}) {
      refuseClosed()
      await publish({ reference: { id, app }, delayMs: Math.max(0, Math.round(delayMs)) })
    },

    async subscribe(handler, { concurrency }) {
      refuseClosed()
      const subscription = await subscribe(handler, {
        name,
        prefix,
        connections,
        concurrency,
        closeTimeoutMs: answerTimeoutMs,
        logger,
        onTaken: (ringId) => void forget(ringId).catch(onError),
        giveBack: (rings) => answered(async () => await ringAll(await connected(), rings)),
      })
      subscriptions.add(subscription)
      return subscription
    },

    async depth() {
      refuseClosed()
      const [counts, sizes] = await answered(async () => {
        const { redis, queue } = await connected()
        return Promise.all([queue.getJobCounts('waiting', 'prioritized', 'delayed'), redis.hvals(keys(queue).sizes)])
      })
      // To BullMQ, a ring is one, however many references it holds.
      const more = sizes.reduce((sum, size) => sum + Number(size) - 1, 0)
      return Object.values(counts).reduce((sum, count) => sum + count, more)
    },

    async close() {
      if (closed) return
      closed = true
      await Promise.all([...subscriptions].map((subscription) => subscription.stop()))
      await publisher?.queue.close().catch(onError)
      publisher?.redis.disconnect()
    },
  }

  async function publishAll(publications: Publication[]): Promise<undefined[]> {
    const to = await connected()
    const references = publications.map(({ reference }) => reference)
    const turns = fairness
      ? await takeTurns(
          to.redis,
          keys(to.queue),
          references.map(({ app }) => app),
        )
      : []
    const inTurn = publications.map((publication, index) => ({ ...publication, turn: turns[index] }))
    const now = inTurn.filter(({ delayMs }) => delayMs <= 0)
    const later = inTurn.filter(({ delayMs }) => delayMs > 0)
    await Promise.all([
      ringAll(
        to,
        gathered(
          now.map(({ reference }) => reference),
          now.map(({ turn }) => turn),
        ),
      ),
      ...later.map(({ reference: { id, app }, turn, delayMs }) => add(to, { app, ids: [id], turn }, delayMs)),
    ])
    return publications.map(() => undefined)
  }

  async function ringAll(to: Publisher, rings: Ring[]): Promise<void> {
    await Promise.all(rings.map((ring) => add(to, ring, 0)))
  }

  async function add({ redis, queue }: Publisher, ring: Ring, delay: number): Promise<void> {
    // An id of its own for each: BullMQ swallows one that it knows.
    const jobId = randomUUID()
    const remembered = ring.ids.length > 1 && redis.hset(keys(queue).sizes, jobId, ring.ids.length)
    await Promise.all([remembered, queue.add('ring', ring, { ...ringOptions, jobId, delay, priority: ring.turn })])
  }

  /** Lets go of the size of a ring that waits no longer. */
  async function forget(ringId: string): Promise<void> {
    const { redis, queue } = await connected()
    await redis.hdel(keys(queue).sizes, ringId)
  }

  /** BullMQ's set of what waits for its turn; and ours beside it: each application's last turn, and how many references a ring holds. */
  function keys(queue: Queue): { prioritized: string; turns: string; sizes: string } {
    return { prioritized: queue.toKey('prioritized'), turns: queue.toKey('turns'), sizes: queue.toKey('sizes') }
  }

  function publishing(): Publisher {
    if (publisher) return publisher
    const redis = connections.publishing(answerTimeoutMs)
    const queue = new Queue(name, { connection: redis, prefix, streams: { events: { maxLen: 100 } } })
    queue.on('error', onError)
    return (publisher = { redis, queue })
  }

  /** Waits for the first connection, within the time limit; after it, calls fail at once while the connection is lost. */
  async function connected(): Promise<Publisher> {
    const current = publishing()
    const ready = current.queue.waitUntilReady().catch((error: unknown) => {
      // BullMQ does not begin anew after a failed beginning; the next call does.
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
      throw new StemworkError(
        'STORE_UNAVAILABLE',
        'Redis did not answer for the queue. Try again; if it goes on, look at the cause and at the server.',
        { retryable: true, cause: error },
      )
    }
  }

  function noAnswer(): Error {
    return new Error(`No answer within ${answerTimeoutMs} ms.`)
  }

  function refuseClosed(): void {
    if (closed) throw new StemworkError('SHUTTING_DOWN', 'The queue was closed. Make a new one to go on.')
  }
}
