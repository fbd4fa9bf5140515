import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, test } from 'vitest'
import { bullmqQueue, type BullmqQueueOptions } from '../../../src/adapters/queues/bullmq/index.js'
import { StemworkError } from '../../../src/core/engine/errors.js'
import type { JobQueue } from '../../../src/core/engine/ports/job-queue.js'
import { silentLogger } from '../../../src/core/engine/ports/logger.js'
import { describeWith } from '../../servers/found-server.js'
import { findRedis, startRedis } from '../../servers/redis.js'

const redis = await findRedis()
const own = await startRedis()
const isOutage = (error: unknown) =>
  StemworkError.is(error) && error.code === 'STORE_UNAVAILABLE' && error.retryable && error.cause !== undefined

describeWith('bullmqQueue and its Redis', { redis }, ({ redis: server }) => {
  let connection: Redis
  beforeAll(() => void (connection = new Redis(server.url)))
  afterAll(async () => {
    connection.disconnect()
    await server.release()
  })

  async function withQueue(
    options: Partial<BullmqQueueOptions>,
    work: (queue: JobQueue, prefix: string) => Promise<void>,
  ): Promise<void> {
    const prefix = `test-${randomUUID()}`
    const queue = bullmqQueue({ connection, prefix, ...options })
    try {
      await work(queue, prefix)
    } finally {
      await queue.close()
      const keys = await connection.keys(`${prefix}:*`)
      if (keys.length > 0) await connection.del(keys)
    }
  }

  test('a connection of the host is only used: never closed, and its settings do no harm', async () => {
    await withQueue({}, async (queue) => {
      await queue.notify()
      const subscription = await queue.subscribe(async () => {})
      await subscription.stop()
      await queue.close()
      assert.equal(await connection.ping(), 'PONG')
    })
  })

  test('options or a URL work as well as a connection', async () => {
    const { hostname, port } = new URL(server.url)
    for (const address of [server.url, { host: hostname, port: Number(port) }]) {
      await withQueue({ connection: address }, async (queue, prefix) => {
        await queue.notify()
        assert.equal(await connection.llen(`${prefix}:stemwork:wait`), 1)
      })
    }
  })

  test('a password that Redis refuses is in no log line and no error', async () => {
    const url = new URL(server.url)
    url.username = 'nobody'
    url.password = 'hunter2-and-more'
    const told: object[] = []
    const logger = { ...silentLogger, warn: (fields: object) => void told.push(fields) }
    await withQueue({ connection: url.href, logger }, async (queue) => {
      const refusal: unknown = await queue.check().catch((error: unknown) => error)
      assert.ok(isOutage(refusal))
      const said = inspect([told, refusal], { depth: null })
      assert.match(said, /WRONGPASS/)
      assert.doesNotMatch(said, /hunter2/)
    })
  })

  test('nothing is connected before the first use', async () => {
    const queue = bullmqQueue({ connection: { host: '127.0.0.1', port: 1 } })
    await queue.close()
    await assert.rejects(queue.notify(), (error) => StemworkError.is(error) && error.code === 'SHUTTING_DOWN')
  })

  test('a name with a colon and a connection with a key prefix are refused', () => {
    const isRefusal = (error: unknown) => StemworkError.is(error) && error.code === 'INVALID_OPTIONS'
    assert.throws(() => bullmqQueue({ connection, name: 'a:b' }), isRefusal)
    assert.throws(() => bullmqQueue({ connection, name: '' }), isRefusal)
    assert.throws(() => bullmqQueue({ connection: { keyPrefix: 'x' } }), isRefusal)
  })

  test('handled notifications leave nothing behind', async () => {
    await withQueue({}, async (queue, prefix) => {
      let calls = 0
      const subscription = await queue.subscribe(async () => void calls++)
      for (let n = 0; n < 5; n++) {
        const before = calls
        await queue.notify()
        while (calls === before) await sleep(5)
      }
      await subscription.stop()
      // Counters, markers and the short stream of events remain, but no key of a job.
      const kinds = (await connection.keys(`${prefix}:*`)).map((key) => key.slice(`${prefix}:stemwork:`.length))
      assert.deepEqual(
        kinds.filter((kind) => /^[0-9a-f-]{36}/.test(kind)),
        [],
      )
    })
  })

  test('a notification goes to another worker if the one that took it is cut off for ten seconds', async () => {
    await withQueue({}, async (queue, prefix) => {
      let end = () => {}
      await new Promise<void>((resolve, reject) => {
        const listener = () => new Promise<void>((ended) => resolve(void (end = ended)))
        queue.subscribe(listener).catch(reject)
        queue.notify().catch(reject)
      })
      const keys = [...(await connection.keys(`${prefix}:stemwork:*:lock`)), `${prefix}:stemwork:stalled-check`]
      const leftMs = await Promise.all(keys.map((key) => connection.pttl(key)))
      end()
      assert.equal(leftMs.length, 2)
      for (const ms of leftMs) assert.ok(ms > 0 && ms <= 10_000, `${ms} ms`)
    })
  })

  test('ten thousand unheard notifications are a single one in Redis', async () => {
    await withQueue({}, async (queue, prefix) => {
      const other = bullmqQueue({ connection, prefix })
      for (let round = 0; round < 10; round++)
        await Promise.all(Array.from({ length: 1000 }, (_, n) => (n % 2 ? queue : other).notify()))
      // Two processes that check at the same moment may both find none.
      assert.ok((await connection.llen(`${prefix}:stemwork:wait`)) <= 2)
      let calls = 0
      const subscription = await queue.subscribe(async () => void calls++)
      while (calls === 0) await sleep(5)
      await subscription.stop()
      await other.close()
    })
  })

  test('a notification that reaches a worker while it stops is left to another one', async () => {
    await withQueue({}, async (queue, prefix) => {
      const other = bullmqQueue({ connection, prefix })
      for (let round = 0; round < 20; round++) {
        let heard = false
        const stopping = await queue.subscribe(async () => void (heard = true))
        await Promise.all([queue.notify(), stopping.stop()])
        const next = await other.subscribe(async () => void (heard = true))
        while (!heard) await sleep(5)
        await next.stop()
      }
      await other.close()
    })
  })
})

describeWith('bullmqQueue on a Redis that goes away', { own }, ({ own: server }) => {
  // Removes whatever a failed test has left behind.
  beforeEach(() => server.restart())
  afterAll(() => server.release())

  test('an outage fails calls in bounded time; afterwards the same queue and subscription work again', async () => {
    const queue = bullmqQueue({ connection: server.url, prefix: randomUUID(), answerTimeoutMs: 1000 })
    let calls = 0
    const subscription = await queue.subscribe(async () => void calls++)
    await queue.notify()
    while (calls === 0) await sleep(10)
    await server.kill()
    for (let n = 0; n < 5; n++) await assert.rejects(queue.notify(), isOutage)
    await assert.rejects(queue.check(), isOutage)
    await server.start()
    const before = calls
    while (calls === before) {
      await queue.notify().catch(() => {})
      await sleep(50)
    }
    await subscription.stop()
    await queue.close()
  })

  test('an outage is told once for each problem, and so is its end', async () => {
    const lines: string[] = []
    const log = (fields: Record<string, unknown>, message: string) =>
      void lines.push(`${message} ${fields.err instanceof Error ? fields.err.message : ''}`)
    const logger = { debug: log, info: log, warn: log, error: log }
    const queue = bullmqQueue({ connection: server.url, prefix: randomUUID(), logger })
    let calls = 0
    const subscription = await queue.subscribe(async () => void calls++)
    await queue.notify()
    while (calls === 0) await sleep(10)
    await server.kill()
    for (let n = 0; n < 20; n++) {
      await assert.rejects(queue.notify(), isOutage)
      await sleep(20)
    }
    assert.notEqual(lines.length, 0)
    await server.start()
    while (calls === 1) {
      await queue.notify().catch(() => {})
      await sleep(50)
    }
    await subscription.stop()
    await queue.close()
    assert.deepEqual(lines, [...new Set(lines)])
    assert.equal(lines.filter((line) => line.startsWith('Redis answers the queue again.')).length, 1)
  })

  test('a queue that never reached Redis fails in bounded time and works once Redis is there', async () => {
    await server.kill()
    const queue = bullmqQueue({ connection: server.url, prefix: randomUUID(), answerTimeoutMs: 300 })
    await assert.rejects(queue.notify(), isOutage)
    await server.start()
    for (;;) {
      try {
        await queue.notify()
        break
      } catch (error) {
        assert.ok(isOutage(error))
      }
    }
    await queue.close()
  })

  test('stop and close end in bounded time while Redis is down, after the call in progress', async () => {
    const queue = bullmqQueue({ connection: server.url, prefix: randomUUID(), answerTimeoutMs: 500 })
    let release = () => {}
    const gate = new Promise<void>((resolve) => (release = resolve))
    let entered = false
    let finished = false
    const subscription = await queue.subscribe(async () => {
      entered = true
      await gate
      finished = true
    })
    await queue.notify()
    while (!entered) await sleep(10)
    await server.kill()
    const stopping = subscription.stop().then(() => finished)
    release()
    // Neither call waits for the stopped server.
    assert.equal(await stopping, true)
    await queue.close()
    await server.start()
  })

  test('a Redis that comes back empty after a crash while the listener is busy notifies once it is free', async () => {
    const queue = bullmqQueue({ connection: server.url, prefix: randomUUID(), answerTimeoutMs: 1000 })
    let calls = 0
    let release = () => {}
    const gate = new Promise<void>((resolve) => (release = resolve))
    const subscription = await queue.subscribe(async () => {
      calls++
      await gate
    })
    await queue.notify()
    while (calls < 1) await sleep(10)
    await server.kill()
    await server.start()
    release()
    while (calls < 2) {
      await queue.notify().catch(() => {})
      await sleep(50)
    }
    await subscription.stop()
    await queue.close()
  })

  test('a wiped Redis accepts new notifications from the same queue', async () => {
    const queue = bullmqQueue({ connection: server.url, prefix: randomUUID() })
    let calls = 0
    const subscription = await queue.subscribe(async () => void calls++)
    const admin = new Redis(server.url)
    await once(admin, 'ready')
    for (let round = 0; round < 3; round++) {
      await queue.notify({ delayMs: 60_000 })
      await admin.flushall()
      const before = calls
      await queue.notify()
      while (calls === before) await sleep(10)
    }
    admin.disconnect()
    await subscription.stop()
    await queue.close()
  })
})
