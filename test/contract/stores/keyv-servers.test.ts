import { randomUUID } from 'node:crypto'
import KeyvRedis, { createKeyv } from '@keyv/redis'
import { KeyvPostgres } from '@keyv/postgres'
import { Keyv } from 'keyv'
import { Pool } from 'pg'
import { afterAll, describe, expect, test } from 'vitest'
import { applicationStoreContract, jobStoreContract } from '../../../src/contract/index.js'
import { sampleJob } from '../../../src/contract/job-samples.js'
import { keyvApplications } from '../../../src/adapters/stores/keyv/keyv-applications.js'
import { keyvJobs } from '../../../src/adapters/stores/keyv/keyv-jobs.js'
import { describeWith } from '../../servers/found-server.js'
import { findPostgres } from '../../servers/postgres.js'
import { findRedis, startRedis } from '../../servers/redis.js'
import { settableClock } from './settable-clock.js'

const redis = await findRedis()
const postgres = await findPostgres()
const privateRedis = await startRedis()

interface OpenKeyv {
  keyv: Keyv
  close(): Promise<void>
}

function contracts(open: () => Promise<OpenKeyv>): void {
  jobStoreContract(
    { describe, test },
    {
      async open({ idempotencyMs }) {
        const { clock, advance } = settableClock()
        const { keyv, close } = await open()
        return {
          store: keyvJobs({ keyv, clock, idempotencyMs }),
          advance,
          damage: async (id) => void (await keyv.set(`stemwork/job/${id}`, '{}')),
          close,
        }
      },
    },
  )
  applicationStoreContract(
    { describe, test },
    {
      async open() {
        const { keyv, close } = await open()
        return { store: keyvApplications({ keyv }), close }
      },
    },
  )

  test('a restart finds the jobs', async () => {
    const { keyv, close } = await open()
    const before = keyvJobs({ keyv })
    for (let n = 0; n < 20; n++) await before.create(sampleJob())
    expect(await keyvJobs({ keyv }).list({ limit: 99 })).toEqual(await before.list({ limit: 99 }))
    await close()
  })
}

describeWith('Keyv on Redis', { redis }, ({ redis }) => {
  const adapter = new KeyvRedis(redis.url)
  // One Keyv for all cases, which clear it: a backend has a single namespace.
  const keyv = new Keyv({ store: adapter, namespace: `stemwork-test-${randomUUID()}`, useKeyPrefix: false })
  afterAll(async () => {
    await adapter.disconnect()
    await redis.release()
  })
  contracts(async () => ({ keyv, close: () => keyv.clear() }))
})

describeWith('Keyv on Postgres', { postgres }, ({ postgres }) => {
  const table = `keyv_${randomUUID().replaceAll('-', '')}`
  const adapter = new KeyvPostgres({ uri: postgres.url, table })
  const keyv = new Keyv({ store: adapter, namespace: randomUUID() })
  afterAll(async () => {
    await adapter.disconnect()
    const pool = new Pool({ connectionString: postgres.url })
    await pool.query(`DROP TABLE IF EXISTS ${table}`)
    await pool.end()
    await postgres.release()
  })
  contracts(async () => ({ keyv, close: () => keyv.clear() }))
})

describeWith('Keyv on a Redis that is killed', { privateRedis }, ({ privateRedis }) => {
  afterAll(() => privateRedis.release())

  test('fails within its time, never says "no such job", and works again when Redis is back', async () => {
    // Created as in the package's own examples: with the switches that swallow errors.
    const keyv = createKeyv(privateRedis.url, { namespace: 'jobs' })
    const jobs = keyvJobs({ keyv, timeoutMs: 500 })
    const { job } = await jobs.create(sampleJob())
    await privateRedis.kill()
    const unavailable = { code: 'STORE_UNAVAILABLE', retryable: true }
    for (let n = 0; n < 3; n++) {
      await expect(jobs.get(job.id)).rejects.toMatchObject(unavailable)
      await expect(jobs.list({ limit: 5 })).rejects.toMatchObject(unavailable)
      await expect(jobs.claim({ owner: 'w', leaseMs: 1000 })).rejects.toMatchObject(unavailable)
      await expect(jobs.create(sampleJob())).rejects.toMatchObject(unavailable)
    }
    await expect(keyvJobs({ keyv: createKeyv(privateRedis.url), timeoutMs: 500 }).get(job.id)).rejects.toMatchObject(
      unavailable,
    )
    await privateRedis.start()
    let created: string | undefined
    while (created === undefined) {
      created = await jobs.create(sampleJob()).then(
        ({ job }) => job.id,
        () => undefined,
      )
    }
    expect((await jobs.get(created))?.id).toBe(created)
    await keyv.disconnect()
  })
})
