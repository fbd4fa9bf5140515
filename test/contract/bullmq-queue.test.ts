import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, test } from 'vitest'
import { bullmqQueue, type BullmqQueueOptions } from '../../src/adapters/queues/bullmq/index.js'
import { StemworkError } from '../../src/core/engine/errors.js'
import type { JobQueue } from '../../src/core/engine/ports/job-queue.js'
import { describeWith } from '../servers/found-server.js'
import { findRedis, startRedis } from '../servers/redis.js'

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

  test("a connection of the host's is looked at only: never closed, and its settings are no obstacle", async () => {
    await withQueue({}, async (queue) => {
      await queue.publish({ id: 'a', app: 'app' })
      const subscription = await queue.subscribe(async () => {}, { concurrency: 1 })
      await subscription.stop()
      await queue.close()
      assert.equal(await connection.ping(), 'PONG')
    })
  })

  test('options and a URL do as well as a connection', async () => {
    const { hostname, port } = new URL(server.url)
    for (const address of [server.url, { host: hostname, port: Number(port) }]) {
      await withQueue({ connection: address }, async (queue) => {
        await queue.publish({ id: 'a', app: 'app' })
        assert.equal(await queue.depth(), 1)
      })
    }
  })

  test('nothing is connected before the first use', async () => {
    const queue = bullmqQueue({ connection: { host: '127.0.0.1', port: 1 } })
    await queue.close()
    await assert.rejects(
      queue.publish({ id: 'a', app: 'app' }),
      (error) => StemworkError.is(error) && error.code === 'SHUTTING_DOWN',
    )
  })

  test('a name with a colon and a connection with a key prefix are refused', () => {
    const isRefusal = (error: unknown) => StemworkError.is(error) && error.code === 'INVALID_OPTIONS'
    assert.throws(() => bullmqQueue({ connection, name: 'a:b' }), isRefusal)
    assert.throws(() => bullmqQueue({ connection, name: '' }), isRefusal)
    assert.throws(() => bullmqQueue({ connection: { keyPrefix: 'x' } }), isRefusal)
  })

  test('delivered references leave nothing behind', async () => {
    await withQueue({}, async (queue, prefix) => {
      let heard = 0
      const subscription = await queue.subscribe(async () => void heard++, { concurrency: 4 })
      await Promise.all(Array.from({ length: 30 }, (_, n) => queue.publish({ id: `job-${n}`, app: 'app' })))
      while (heard < 30) await sleep(10)
      await subscription.stop()
      assert.equal(await queue.depth(), 0)
      // Counters, markers and the short stream of events stay; no key of a job does.
      const kinds = (await connection.keys(`${prefix}:*`)).map((key) => key.slice(`${prefix}:stemwork:`.length))
      assert.deepEqual(
        kinds.filter((kind) => /^[0-9a-f-]{36}/.test(kind)),
        [],
      )
    })
  })

  test('three applications are served in turns, whoever came first', async () => {
    await withQueue({}, async (queue) => {
      for (const app of ['a', 'b', 'c']) for (let n = 0; n < 10; n++) await queue.publish({ id: `${app}${n}`, app })
      const served: string[] = []
      const subscription = await queue.subscribe(async ({ id }) => void served.push(id), { concurrency: 1 })
      while (served.length < 30) await sleep(10)
      await subscription.stop()
      for (let round = 0; round < 10; round++) {
        assert.deepEqual(served.slice(round * 3, round * 3 + 3).sort(), [`a${round}`, `b${round}`, `c${round}`])
      }
    })
  })

  test('an application that was idle gets no arrears: newcomers do not push the others back for long', async () => {
    await withQueue({}, async (queue) => {
      for (let n = 0; n < 20; n++) await queue.publish({ id: `busy${n}`, app: 'busy' })
      const served: string[] = []
      const subscription = await queue.subscribe(
        async ({ id }) => {
          served.push(id)
          // A stream of single jobs of another application, each sent when the one before is served.
          if (served.length < 20) await queue.publish({ id: `single${served.length}`, app: 'quiet' })
        },
        { concurrency: 1 },
      )
      while (served.filter((id) => id.startsWith('busy')).length < 20) await sleep(10)
      await subscription.stop()
      const lastOfTen = served.filter((id) => id.startsWith('busy'))[9]
      assert.ok(
        served.indexOf(lastOfTen!) <= 21,
        `the tenth job of the busy application was served as number ${served.indexOf(lastOfTen!)}`,
      )
    })
  })

  test('references that are published at once share their way through Redis, and count one by one', async () => {
    await withQueue({}, async (queue, prefix) => {
      const ids = Array.from({ length: 100 }, (_, n) => `job-${n}`)
      await Promise.all(ids.map((id, n) => queue.publish({ id, app: `app-${n % 2}` })))
      assert.equal(await queue.depth(), 100)
      const rings = await connection.zcard(`${prefix}:stemwork:prioritized`)
      assert.ok(rings <= 12, `${rings} rings for 100 references`)
      const heard: string[] = []
      const subscription = await queue.subscribe(async ({ id }) => void heard.push(id), { concurrency: 100 })
      while (heard.length < 100) await sleep(10)
      await subscription.stop()
      assert.deepEqual(heard.sort(), ids.sort())
      assert.equal(await queue.depth(), 0)
    })
  })

  test('a burst spreads over the processes that have places, in the order of its publishing', async () => {
    await withQueue({}, async (queue, prefix) => {
      const other = bullmqQueue({ connection, prefix })
      const running = [0, 0]
      const heard: number[][] = [[], []]
      const subscriptions = await Promise.all(
        [queue, other].map((each, place) =>
          each.subscribe(
            async ({ id }) => {
              heard[place]!.push(Number(id))
              assert.ok(++running[place]! <= 2)
              await sleep(120)
              running[place]!--
            },
            { concurrency: 2 },
          ),
        ),
      )
      await Promise.all(Array.from({ length: 16 }, (_, n) => queue.publish({ id: String(n), app: 'app' })))
      while (heard.flat().length < 16) await sleep(10)
      await Promise.all(subscriptions.map((subscription) => subscription.stop()))
      await other.close()
      assert.deepEqual(
        heard.flat().sort((a, b) => a - b),
        Array.from({ length: 16 }, (_, n) => n),
      )
      for (const each of heard)
        assert.deepEqual(
          each,
          [...each].sort((a, b) => a - b),
        )
      assert.ok(
        heard.every((each) => each.length >= 4),
        `${heard.map((each) => each.length).join(' and ')} of 16 references`,
      )
    })
  })

  test('a burst of one application keeps the single job of another waiting for moments only', async () => {
    await withQueue({}, async (queue) => {
      await Promise.all(Array.from({ length: 100 }, (_, n) => queue.publish({ id: `busy-${n}`, app: 'busy' })))
      await queue.publish({ id: 'single', app: 'quiet' })
      const heard: string[] = []
      const subscription = await queue.subscribe(async ({ id }) => void (heard.push(id), await sleep(80)), {
        concurrency: 1,
      })
      while (!heard.includes('single')) await sleep(10)
      await subscription.stop()
      assert.ok(heard.indexOf('single') <= 3, `the single job was served after ${heard.indexOf('single')} others`)
      assert.equal(await queue.depth(), 101 - heard.length)
    })
  })

  test('what a subscription had not begun of a burst when it stopped is delivered to the next', async () => {
    await withQueue({}, async (queue) => {
      const heard: string[] = []
      const handler = async ({ id }: { id: string }) => void (heard.push(id), await sleep(30))
      const first = await queue.subscribe(handler, { concurrency: 2 })
      await Promise.all(Array.from({ length: 40 }, (_, n) => queue.publish({ id: `job-${n}`, app: 'app' })))
      while (heard.length < 2) await sleep(1)
      await first.stop()
      assert.ok(heard.length < 16)
      const second = await queue.subscribe(handler, { concurrency: 40 })
      while (heard.length < 40) await sleep(10)
      await second.stop()
      assert.deepEqual(heard.sort(), Array.from({ length: 40 }, (_, n) => `job-${n}`).sort())
    })
  })

  test('without fairness references are served first in, first out', async () => {
    await withQueue({ fairness: false }, async (queue) => {
      const sent: string[] = []
      for (const app of ['a', 'b']) for (let n = 0; n < 10; n++) sent.push(`${app}${n}`)
      for (const id of sent) await queue.publish({ id, app: id[0]! })
      const served: string[] = []
      const subscription = await queue.subscribe(async ({ id }) => void served.push(id), { concurrency: 1 })
      while (served.length < sent.length) await sleep(10)
      await subscription.stop()
      assert.deepEqual(served, sent)
    })
  })

  test('two subscribed processes share the references', async () => {
    await withQueue({}, async (queue, prefix) => {
      const other = bullmqQueue({ connection, prefix })
      const heard: string[][] = [[], []]
      const subscriptions = await Promise.all(
        [queue, other].map((each, index) =>
          each.subscribe(async ({ id }) => void (await sleep(2), heard[index]!.push(id)), { concurrency: 2 }),
        ),
      )
      const sent = Array.from({ length: 60 }, (_, n) => `job-${n}`)
      await Promise.all(sent.map((id) => queue.publish({ id, app: 'app' })))
      while (heard.flat().length < 60) await sleep(10)
      await Promise.all(subscriptions.map((subscription) => subscription.stop()))
      await other.close()
      assert.deepEqual(heard.flat().sort(), sent.sort())
      assert.ok(heard[0]!.length > 0 && heard[1]!.length > 0)
    })
  })
})

describeWith('bullmqQueue on a Redis that goes away', { own }, ({ own: server }) => {
  // Whatever a test that failed has left behind.
  beforeEach(() => server.restart())
  afterAll(() => server.release())

  test('an outage fails calls in bounded time; afterwards the same queue and subscription work again', async () => {
    const queue = bullmqQueue({ connection: server.url, prefix: randomUUID(), answerTimeoutMs: 1000 })
    const heard: string[] = []
    const subscription = await queue.subscribe(async ({ id }) => void heard.push(id), { concurrency: 1 })
    await queue.publish({ id: 'before', app: 'app' })
    while (!heard.includes('before')) await sleep(10)
    await server.kill()
    for (let n = 0; n < 5; n++) await assert.rejects(queue.publish({ id: `lost-${n}`, app: 'app' }), isOutage)
    await assert.rejects(queue.depth(), isOutage)
    await server.start()
    while (!heard.includes('after')) {
      await queue.publish({ id: 'after', app: 'app' }).catch(() => {})
      await sleep(50)
    }
    // What failed was not kept to come later: the sweep rings for it.
    assert.deepEqual(
      heard.filter((id) => id.startsWith('lost')),
      [],
    )
    await subscription.stop()
    await queue.close()
  })

  test('a queue that never reached Redis fails in bounded time and works once Redis is there', async () => {
    await server.kill()
    const queue = bullmqQueue({ connection: server.url, prefix: randomUUID(), answerTimeoutMs: 300 })
    await assert.rejects(queue.publish({ id: 'a', app: 'app' }), isOutage)
    await server.start()
    for (;;) {
      try {
        await queue.publish({ id: 'b', app: 'app' })
        break
      } catch (error) {
        assert.ok(isOutage(error))
      }
    }
    await queue.close()
  })

  test('stop and close end in bounded time while Redis is away, after the running handlers', async () => {
    const queue = bullmqQueue({ connection: server.url, prefix: randomUUID(), answerTimeoutMs: 500 })
    let release = () => {}
    const gate = new Promise<void>((resolve) => (release = resolve))
    let entered = false
    let finished = false
    const subscription = await queue.subscribe(
      async () => {
        entered = true
        await gate
        finished = true
      },
      { concurrency: 1 },
    )
    await queue.publish({ id: 'running', app: 'app' })
    // Not by the depth: Redis has handed the reference out before the handler has it.
    while (!entered) await sleep(10)
    await server.kill()
    const stopping = subscription.stop().then(() => finished)
    release()
    assert.equal(await Promise.race([stopping, sleep(10_000, 'late', { ref: false })]), true)
    assert.equal(
      await Promise.race([queue.close().then(() => 'closed'), sleep(10_000, 'late', { ref: false })]),
      'closed',
    )
    await server.start()
  })

  test('a Redis that crashes and comes back empty while every place is taken delivers again once one is free', async () => {
    const queue = bullmqQueue({ connection: server.url, prefix: randomUUID(), answerTimeoutMs: 1000 })
    const heard: string[] = []
    let release = () => {}
    const gate = new Promise<void>((resolve) => (release = resolve))
    const subscription = await queue.subscribe(async ({ id }) => void (heard.push(id), await gate), { concurrency: 2 })
    await Promise.all(['a', 'b', 'c', 'd'].map((id) => queue.publish({ id, app: 'app' })))
    while (heard.length < 2) await sleep(10)
    await server.kill()
    await server.start()
    release()
    while (!heard.includes('after')) {
      await queue.publish({ id: 'after', app: 'app' }).catch(() => {})
      await sleep(50)
    }
    await subscription.stop()
    await queue.close()
  })

  test('a wiped Redis takes new references from the same queue', async () => {
    const queue = bullmqQueue({ connection: server.url, prefix: randomUUID() })
    const heard: string[] = []
    const subscription = await queue.subscribe(async ({ id }) => void heard.push(id), { concurrency: 1 })
    const admin = new Redis(server.url)
    await once(admin, 'ready')
    for (let round = 0; round < 3; round++) {
      await queue.publish({ id: `late-${round}`, app: 'app' }, { delayMs: 60_000 })
      await admin.flushall()
      assert.equal(await queue.depth(), 0)
      await queue.publish({ id: `job-${round}`, app: 'app' })
      while (!heard.includes(`job-${round}`)) await sleep(10)
    }
    admin.disconnect()
    await subscription.stop()
    await queue.close()
  })
})
