import { Redis, type RedisOptions } from 'ioredis'
import { invalidOptions } from '../../../core/engine/errors.js'
import type { Logger } from '../../../core/engine/ports/logger.js'

export type RedisAddress = Redis | RedisOptions | string

/** Delay before each reconnect, without end: a queue that gave up would never wake its workers. */
const retryStrategy = (times: number) => Math.min(times * 100, 2000)

/** BullMQ's workers ask Redis to answer after this time at the latest, even if nothing waits. */
const longestBlockMs = 10_000

export type RedisConnections = ReturnType<typeof redisConnections>

/**
 * Makes the connections of one queue like the host's, which is only read: publishing and working need opposite
 * settings, and neither may end the host's commands.
 */
export function redisConnections(address: RedisAddress, { name, logger }: { name: string; logger: Logger }) {
  if (typeof address !== 'string' && (isConnection(address) ? address.options : address).keyPrefix)
    throw invalidOptions(
      'BullMQ does not support connections with a `keyPrefix`. Remove it, and use the option `prefix` of the ' +
        'queue instead.',
    )
  const told = new Set<string>()
  let problem: unknown

  /** Logs each problem once until Redis answers again: every attempt of every connection reports it, some twice. */
  const report = (error: unknown) => {
    if (told.has(String(error))) return
    told.add(String(error))
    logger.warn(
      { queue: name, err: error },
      'The queue cannot use Redis and tries again. Meanwhile, workers find jobs by their sweep.',
    )
  }

  const connect = (settings: RedisOptions): Redis => {
    const options: RedisOptions = { ...settings, lazyConnect: true, retryStrategy }
    const connection =
      typeof address === 'string'
        ? new Redis(address, options)
        : isConnection(address)
          ? address.duplicate(options)
          : new Redis({ ...address, ...options })
    return connection
      .on('error', (error: Error & { command?: unknown }) => {
        // What Redis refused: with a wrong password, the command that contains it.
        delete error.command
        problem = error
        report(error)
      })
      .on('ready', () => {
        problem = undefined
        if (told.size === 0) return
        told.clear()
        logger.info({ queue: name }, 'Redis answers the queue again.')
      })
  }

  return {
    /** Why the last attempt to connect failed: a call that fails because of it only learns `Connection is closed`. */
    get problem() {
      return problem
    },
    report,

    /** Fails at once while Redis is down: no command is kept for later, as workers also poll the store. */
    publishing: (answerTimeoutMs: number) =>
      connect({
        enableOfflineQueue: false,
        maxRetriesPerRequest: 0,
        autoResendUnfulfilledCommands: false,
        socketTimeout: answerTimeoutMs,
      }),

    /** Waits for Redis indefinitely, but not on a connection that is dead without being closed. */
    working: (answerTimeoutMs: number) =>
      connect({
        enableOfflineQueue: true,
        maxRetriesPerRequest: null,
        socketTimeout: longestBlockMs + answerTimeoutMs,
      }),
  }
}

/** Checks the shape, as the host may have another copy of ioredis. */
function isConnection(address: Redis | RedisOptions): address is Redis {
  return typeof (address as { duplicate?: unknown }).duplicate === 'function'
}
