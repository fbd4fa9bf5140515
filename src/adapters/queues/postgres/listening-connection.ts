import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../../../core/engine/ports/logger.js'
import { type PostgresConnection, type PostgresPool, query } from '../../stores/postgres/database.js'
import { within } from '../../../core/engine/ports/within.js'

export interface ListeningOptions {
  pool: PostgresPool
  channel: string
  answerTimeoutMs: number
  checkIntervalMs: number
  logger: Logger
}

const firstRetryMs = 100
const longestRetryMs = 5000
/** A server that takes longer to end LISTEN counts as not answering. */
const closeMs = 1000

/**
 * One connection of the pool that listens on a channel until it is closed. A connection that is lost, or that fails a
 * periodic check, is replaced, however often.
 */
export class ListeningConnection {
  readonly #options: ListeningOptions
  /** Called for every notification, and whenever listening begins, as notifications may have been missed before. */
  readonly #onNotification: (payload: string) => void
  readonly #closing = new AbortController()
  readonly #ended: Promise<void>
  #isHearing = false
  #failures = 0

  constructor(options: ListeningOptions, onNotification: (payload: string) => void) {
    this.#options = options
    this.#onNotification = onNotification
    this.#ended = this.#run()
  }

  get isHearing(): boolean {
    return this.#isHearing
  }

  /** Gives the connection back to the pool; if the server does not answer, some time after this returns. */
  async close(): Promise<void> {
    this.#closing.abort()
    await within(this.#ended, closeMs, () => new Error('late')).catch(() => {})
  }

  async #run(): Promise<void> {
    const { channel, logger } = this.#options
    const { signal } = this.#closing
    while (!signal.aborted) {
      try {
        await this.#listen()
      } catch (error) {
        if (!signal.aborted)
          logger.warn({ queue: channel, err: error }, 'The queue lost its connection to Postgres and is reconnecting.')
      }
      this.#isHearing = false
      // Random, so that the processes of a deployment do not all reconnect at once. The timer keeps a worker alive that
      // has nothing else to wait for.
      const retryMs = Math.min(firstRetryMs * 2 ** this.#failures++, longestRetryMs) * (0.5 + Math.random() / 2)
      await sleep(retryMs, undefined, { signal }).catch(() => {})
    }
  }

  /** Returns when closed; throws when the connection is lost. */
  async #listen(): Promise<void> {
    const { channel, answerTimeoutMs, checkIntervalMs } = this.#options
    const client = await this.#connect()
    if (!client) return
    const lost = new AbortController()
    const onError = (error: Error) => lost.abort(error)
    const onNotification = (notification: { channel: string; payload?: string }) => {
      if (notification.channel === channel) this.#onNotification(notification.payload ?? '')
    }
    const ask = (text: string) => query(client, text, [], { timeoutMs: answerTimeoutMs })
    const pause = AbortSignal.any([this.#closing.signal, lost.signal])
    let isSound = false
    client.on('error', onError)
    client.on('notification', onNotification)
    try {
      await ask(`LISTEN "${channel}"`)
      this.#isHearing = true
      this.#failures = 0
      this.#onNotification('')
      await this.#warnIfDeaf(client, ask, pause)
      while (!this.#closing.signal.aborted) {
        await sleep(checkIntervalMs, undefined, { ref: false, signal: pause }).catch(() => {})
        lost.signal.throwIfAborted()
        if (!this.#closing.signal.aborted) await ask('SELECT 1')
      }
      await ask(`UNLISTEN "${channel}"`)
      isSound = true
    } finally {
      // A connection that does not answer has a statement running, so that pg destroys its socket and waits for
      // nothing.
      client.release(!isSound)
      client.removeListener('notification', onNotification)
      if (isSound) client.removeListener('error', onError)
    }
  }

  /** `undefined`: closed meanwhile. A connection that comes too late goes back to the pool. */
  #connect(): Promise<PostgresConnection | undefined> {
    const { pool, answerTimeoutMs } = this.#options
    const { signal } = this.#closing
    return new Promise((resolve, reject) => {
      let isWaiting = true
      const settle = (finish: () => void) => {
        isWaiting = false
        clearTimeout(timer)
        signal.removeEventListener('abort', onClose)
        finish()
      }
      const onClose = () => settle(() => resolve(undefined))
      const timer = setTimeout(
        () => settle(() => reject(new Error(`The pool gave no connection within ${answerTimeoutMs} ms.`))),
        answerTimeoutMs,
      )
      signal.addEventListener('abort', onClose)
      pool.connect().then(
        (client) => (isWaiting ? settle(() => resolve(client)) : client.release()),
        (error: unknown) => settle(() => reject(error)),
      )
    })
  }

  /**
   * A pooler that gives each transaction another connection accepts LISTEN silently, and the notifications go to
   * whoever has that connection next. So a test notification is sent through the pool, on a channel that only this
   * connection listens to.
   */
  async #warnIfDeaf(
    client: PostgresConnection,
    ask: (text: string) => Promise<unknown>,
    signal: AbortSignal,
  ): Promise<void> {
    const { pool, channel, answerTimeoutMs, logger } = this.#options
    const echo = `${channel.slice(0, 20)}_echo_${randomBytes(8).toString('hex')}`
    const heard = new AbortController()
    const onEcho = (notification: { channel: string }) => {
      if (notification.channel === echo) heard.abort()
    }
    client.on('notification', onEcho)
    try {
      await ask(`LISTEN "${echo}"`)
      const sent = query(pool, 'SELECT pg_notify($1, $2)', [echo, ''], { timeoutMs: answerTimeoutMs })
      const isSent = await within(sent, answerTimeoutMs, () => new Error('timeout')).then(
        () => true,
        () => false,
      )
      // A failure to send says nothing about receiving.
      const wait = AbortSignal.any([heard.signal, signal])
      if (isSent) await sleep(answerTimeoutMs, undefined, { ref: false, signal: wait }).catch(() => {})
      await ask(`UNLISTEN "${echo}"`)
      if (isSent && !wait.aborted)
        logger.warn(
          { queue: channel },
          'The queue receives no notifications: the pool seems to go through a pooler in transaction mode, which ' +
            'does not support LISTEN. Workers find jobs only by their sweep. Give the queue a pool that connects ' +
            'to Postgres directly.',
        )
    } finally {
      client.removeListener('notification', onEcho)
    }
  }
}
