import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'pg'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { postgresQueue, type PostgresQueueOptions } from '../../../src/adapters/postgres.js'
import { jobQueueContract } from '../../../src/contract/job-queue.js'
import { StemworkError } from '../../../src/core/engine/errors.js'
import type { JobQueue } from '../../../src/core/engine/ports/job-queue.js'
import { type Logger, silentLogger } from '../../../src/core/engine/ports/logger.js'
import { describeWith } from '../../servers/found-server.js'
import { startPgBouncer } from '../../servers/pgbouncer.js'
import { startPostgres } from '../../servers/postgres.js'
import { type SilentProxy, startSilentProxy } from '../../servers/silent-proxy.js'

const postgres = await startPostgres()
const bouncer = 'missing' in postgres ? postgres : await startPgBouncer(postgres.url)

const newSchema = () => `test_${randomUUID().replaceAll('-', '')}`
const isOutage = (error: unknown) => StemworkError.is(error) && error.code === 'STORE_UNAVAILABLE' && error.retryable

describeWith('postgresQueue', { postgres, bouncer }, ({ postgres: server, bouncer: pooler }) => {
  let pool: Pool
  beforeAll(() => void (pool = new Pool({ connectionString: server.url })))
  afterAll(async () => {
    // Ends only if every connection has been returned.
    await pool.end()
    await pooler.release()
    await server.release()
  })

  jobQueueContract(
    { describe, test },
    {
      async open() {
        const queue = postgresQueue({ pool, schema: newSchema() })
        return { queue, close: () => queue.close() }
      },
    },
  )

  /** A queue with a subscription that was called once, as happens when listening begins. */
  async function listening(options: Partial<PostgresQueueOptions> = {}) {
    const schema = newSchema()
    const queue = postgresQueue({ pool, schema, ...options })
    const calls = { count: 0 }
    const subscription = await queue.subscribe(async () => void calls.count++)
    await until(() => calls.count === 1)
    return { queue, schema, subscription, calls }
  }

  async function listeners(schema: string): Promise<number[]> {
    const { rows } = await pool.query<{ pid: number }>('SELECT pid FROM pg_stat_activity WHERE query LIKE $1', [
      `%LISTEN "${schema.slice(0, 20)}%`,
    ])
    return rows.map(({ pid }) => pid)
  }

  test('a notification reaches every process that listens, and only those of its schema', async () => {
    const [first, other] = [await listening(), await listening()]
    const second = postgresQueue({ pool, schema: first.schema })
    let heard = 0
    await second.subscribe(async () => void heard++)
    await until(() => heard === 1)
    await first.queue.notify()
    await until(() => first.calls.count === 2 && heard === 2)
    assert.equal(other.calls.count, 1)
    await Promise.all([first.queue.close(), second.close(), other.queue.close()])
  })

  test('subscriptions share one connection, which goes back to the pool of the host unharmed', async () => {
    const own = new Pool({ connectionString: server.url, max: 2 })
    const queue = postgresQueue({ pool: own, schema: newSchema() })
    let calls = 0
    const subscriptions = await Promise.all([1, 2, 3].map(() => queue.subscribe(async () => void calls++)))
    await until(() => calls === 3)
    // The other queue has reported whether it is listening.
    await until(() => own.totalCount === 2 && own.idleCount === 1)
    await Promise.all(subscriptions.map((subscription) => subscription.stop()))
    assert.deepEqual([own.totalCount, own.idleCount], [2, 2])
    await queue.close()
    const channels = await Promise.all([1, 2].map(() => own.query('SELECT pg_listening_channels()')))
    assert.deepEqual(
      channels.flatMap(({ rows }) => rows as unknown[]),
      [],
    )
    await own.end()
  })

  test('a pool of one connection and an invalid schema name are refused', () => {
    const isRefusal = (error: unknown) => StemworkError.is(error) && error.code === 'INVALID_OPTIONS'
    assert.throws(() => postgresQueue({ pool: new Pool({ max: 1 }) }), isRefusal)
    assert.throws(() => postgresQueue({ pool, schema: 'a"b' }), isRefusal)
  })

  test('ten thousand notifications at once are few statements', async () => {
    let statements = 0
    const counting: PostgresQueueOptions['pool'] = {
      connect: () => pool.connect(),
      query: (query) => {
        statements++
        return pool.query(query)
      },
    }
    const queue = postgresQueue({ pool: counting, schema: newSchema() })
    await Promise.all(Array.from({ length: 10_000 }, () => queue.notify()))
    assert.equal(statements, 2)
    await queue.close()
  })

  test('a notification that names a subscriber calls only it and those without an address', async () => {
    const schema = newSchema()
    const queue = postgresQueue({ pool, schema })
    const calls = { a: 0, b: 0, c: 0 }
    await queue.subscribe(async () => void calls.a++, { address: 'a' })
    await queue.subscribe(async () => void calls.b++, { address: 'b' })
    await queue.subscribe(async () => void calls.c++)
    // One call each for the start.
    await until(() => calls.a === 1 && calls.b === 1 && calls.c === 1)
    await queue.notify({ workers: ['b'] })
    await until(() => calls.b === 2 && calls.c === 2)
    assert.equal(calls.a, 1)
    // Merged, two named notifications reach both workers; with an unnamed one, all.
    await Promise.all([queue.notify({ workers: ['x'] }), queue.notify({ workers: ['a'] }), queue.notify()])
    await until(() => calls.a >= 2 && calls.b >= 3)
    await queue.close()
  })

  test('a connection that the server ends is replaced; the listener is called once for what was missed', async () => {
    const { queue, schema, calls } = await listening()
    await until(async () => (await listeners(schema)).length === 1)
    for (const pid of await listeners(schema)) await pool.query('SELECT pg_terminate_backend($1)', [pid])
    await until(() => calls.count === 2)
    await queue.notify()
    await until(() => calls.count === 3)
    await queue.close()
  })

  test('behind PgBouncer in transaction mode it reports that it receives nothing, and continues', async () => {
    const warnings: string[] = []
    const bounced = new Pool({ connectionString: pooler.url })
    const { queue } = await listening({ pool: bounced, answerTimeoutMs: 1000, logger: recording(warnings) })
    await until(() => warnings.length > 0)
    assert.match(warnings[0] ?? '', /pooler in transaction mode/)
    await queue.check()
    await queue.close()
    await bounced.end()
  })

  test('with a pool that bypasses PgBouncer, it reports nothing', async () => {
    const warnings: string[] = []
    const { queue } = await listening({ answerTimeoutMs: 1000, logger: recording(warnings) })
    await sleep(1500)
    assert.deepEqual(warnings, [])
    await queue.close()
  })

  describe('with a server that acknowledges and never answers', () => {
    const times = { answerTimeoutMs: 500, checkIntervalMs: 200 }

    async function withProxy(work: (proxy: SilentProxy, pool: Pool) => Promise<void>): Promise<void> {
      const proxy = await startSilentProxy(server.url)
      const proxied = new Pool({ connectionString: proxy.url, connectionTimeoutMillis: 300 })
      try {
        await work(proxy, proxied)
      } finally {
        await proxy.close()
        await proxied.end()
      }
    }

    test('a deaf subscriber hears again by a new connection', () =>
      withProxy(async (proxy, proxied) => {
        const { queue, schema, calls } = await listening({ pool: proxied, ...times })
        const sender = postgresQueue({ pool, schema })
        void proxy.silence()
        await sender.notify()
        proxy.speak()
        // One call for missed notifications, and one for the next.
        await until(() => calls.count === 2)
        await sender.notify()
        await until(() => calls.count === 3)
        await Promise.all([queue.close(), sender.close()])
      }))

    test('it connects again although new connections stay silent for a while, too', () =>
      withProxy(async (proxy, proxied) => {
        const warnings: string[] = []
        const { queue, calls } = await listening({ pool: proxied, ...times, logger: recording(warnings) })
        void proxy.silence()
        await until(() => warnings.length >= 2)
        proxy.speak()
        await until(() => calls.count === 2)
        await queue.close()
      }))

    test('notify and check fail, and stop and close return', () =>
      withProxy(async (proxy, proxied) => {
        // Only the end of the subscription finds out that the server is silent.
        const { queue, subscription } = await listening({
          pool: proxied,
          answerTimeoutMs: 500,
          checkIntervalMs: 3_600_000,
        })
        const patient = await listening({ pool: proxied, answerTimeoutMs: 3_600_000 })
        void proxy.silence()
        await assert.rejects(queue.notify(), isOutage)
        await assert.rejects(queue.check(), isOutage)
        await subscription.stop()
        await queue.close()
        await patient.queue.close()
        proxy.cut()
        await until(() => proxied.totalCount - proxied.idleCount === 0)
      }))

    test('close returns while the connection is being made, and the one that comes too late goes back', async () => {
      const small = new Pool({ connectionString: server.url, max: 2 })
      const busy = await Promise.all([small.connect(), small.connect()])
      const queue = postgresQueue({ pool: small, schema: newSchema() })
      await queue.subscribe(async () => {})
      await queue.close()
      for (const client of busy) client.release()
      await small.end()
    })
  })

  test('a restart of the server is survived by queue and subscription', async () => {
    const { queue, calls }: { queue: JobQueue; calls: { count: number } } = await listening({ answerTimeoutMs: 1000 })
    await server.kill()
    await assert.rejects(queue.notify(), isOutage)
    await server.start()
    await until(() => calls.count === 2)
    await queue.notify()
    await until(() => calls.count === 3)
    await queue.close()
  })
})

function recording(warnings: string[]): Logger {
  return { ...silentLogger, warn: (_, message) => void warnings.push(message) }
}

/** Polls for as long as the test runner allows. */
async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await sleep(10)
}
