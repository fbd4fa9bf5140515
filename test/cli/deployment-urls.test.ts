import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { Pool } from 'pg'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { openDeployment } from '../../src/cli/service/deployment.js'
import { sampleJob } from '../../src/contract/job-samples.js'
import { silentLogger } from '../../src/core/engine/ports/logger.js'
import { describeWith } from '../servers/found-server.js'
import { findPostgres } from '../servers/postgres.js'
import { findRedis } from '../servers/redis.js'
import { startSilentProxy } from '../servers/silent-proxy.js'

const postgres = await findPostgres()
const redis = await findRedis()

describeWith('URLs of a deployment', { postgres, redis }, (servers) => {
  afterAll(() => Promise.all([servers.postgres.release(), servers.redis.release()]))

  test('name a schema in Postgres and a prefix in Redis, so that two deployments share both servers', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'stemwork-urls-'))
    const pool = new Pool({ connectionString: servers.postgres.url })
    const client = new Redis(servers.redis.url)
    const names = ['a', 'b'].map((name) => `test_${name}_${randomUUID().replaceAll('-', '')}`)
    const query = (url: string) => (url.includes('?') ? '&' : '?')
    const deployments = await Promise.all(
      names.map((name) =>
        openDeployment(
          {
            store: `${servers.postgres.url}${query(servers.postgres.url)}schema=${name}`,
            queue: `${servers.redis.url}${query(servers.redis.url)}prefix=${name}`,
            blobs: `file:${join(folder, name)}`,
          },
          silentLogger,
        ),
      ),
    )
    try {
      const [first, second] = deployments
      await first?.parts.jobs.create(sampleJob())
      expect([await first?.parts.jobs.count({}), await second?.parts.jobs.count({})]).toEqual([1, 0])
      // The server's JIT compiler is off on the connections of a deployment.
      await pool.query(`ALTER TABLE ${names[0]}.applications ADD COLUMN jit text DEFAULT current_setting('jit')`)
      await first?.parts.applications.putApplication({ id: 'a', name: 'A', createdAt: 0, webhook: null })
      expect((await pool.query(`SELECT jit FROM ${names[0]}.applications`)).rows).toEqual([{ jit: 'off' }])
      await first?.parts.queue.notify()
      const keys = await Promise.all(names.map((name) => client.keys(`${name}:*`)))
      expect(keys.map(({ length }) => length > 0)).toEqual([true, false])
    } finally {
      for (const { parts, close } of deployments) {
        await parts.queue.close()
        await close()
      }
      for (const name of names) await client.del(...(await client.keys(`${name}:*`)), `${name}:none`)
      client.disconnect()
      for (const name of names) await pool.query(`DROP SCHEMA ${name} CASCADE`)
      await pool.end()
      await rm(folder, { recursive: true })
    }
  })

  test('a Postgres that does not answer is not waited for as a deployment closes', async () => {
    const proxy = await startSilentProxy(servers.postgres.url)
    onTestFinished(() => proxy.close())
    const schema = `test_${randomUUID().replaceAll('-', '')}`
    const store = `${proxy.url}${proxy.url.includes('?') ? '&' : '?'}schema=${schema}`
    const { parts, close } = await openDeployment({ store, blobs: 'file:/tmp' }, silentLogger)
    void proxy.silence()
    const waiting = Promise.allSettled([parts.jobs.count({})])
    await new Promise(setImmediate)
    await close()
    expect(await waiting).toMatchObject([{ reason: { cause: { message: 'Connection terminated unexpectedly' } } }])
    const pool = new Pool({ connectionString: servers.postgres.url })
    await pool.query(`DROP SCHEMA ${schema} CASCADE`)
    await pool.end()
  }, 60_000)
})
