import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { Pool } from 'pg'
import { test } from 'vitest'
import { sampleJob } from '../../../src/contract/job-samples.js'
import { postgresStores } from '../../../src/adapters/postgres.js'
import type { PostgresQuery } from '../../../src/adapters/stores/postgres/database.js'
import { describeWith } from '../../servers/found-server.js'
import { findPostgres } from '../../servers/postgres.js'
import { ownSchema } from './postgres-schema.js'

const postgres = await findPostgres()

describeWith('applications that share a pool of Postgres', { postgres }, ({ postgres: server }) => {
  const { pool, schema } = ownSchema(server, { max: 6 })

  test('one whose creates wait for a lock keeps neither another nor the engine from a connection', async () => {
    const { jobs, applications } = postgresStores({ pool, schema })
    const holder = new Pool({ connectionString: server.url, max: 2 })
    const client = await holder.connect()
    const jobOf = (app: string, key: string | null) =>
      sampleJob({ id: randomUUID(), app, idempotency: key === null ? null : { key, digest: 'd' } })
    try {
      // A host's transaction that has used the key makes other transactions that use it wait for its end.
      await client.query('BEGIN')
      await jobs.create(jobOf('busy', 'key'), { tx: client })
      const blocked = Array.from({ length: 20 }, () => jobs.create(jobOf('busy', 'key')))
      const waiting = async () => {
        // Queried outside the transaction, which sees the same activity until its end.
        const { rows } = await holder.query<{ count: string }>(
          `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%${schema}%'`,
        )
        return Number(rows[0]?.count)
      }
      while ((await waiting()) === 0) await new Promise((resolve) => setTimeout(resolve, 10))

      const other = await jobs.create(jobOf('other', null), { maxQueued: 10 })
      assert.deepEqual(
        (await jobs.list({ app: 'other', limit: 10 })).map(({ id }) => id),
        [other.job.id],
      )
      assert.equal((await jobs.get(other.job.id))?.app, 'other')
      assert.equal(await applications.getKey('unknown'), undefined)
      assert.equal((await jobs.claim({ owner: 'worker', leaseMs: 60_000 }))?.id, other.job.id)

      await client.query('COMMIT')
      assert.equal(new Set((await Promise.all(blocked)).map(({ job }) => job.id)).size, 1)
    } finally {
      client.release(true)
      await holder.end()
    }
  })

  test('look-ups of keys and jobs that come together are few statements, each with its own answer', async () => {
    const statements: string[] = []
    const counting = {
      options: pool.options,
      connect: () => pool.connect(),
      query: (query: PostgresQuery) => {
        statements.push(query.text)
        return pool.query(query)
      },
    }
    const { jobs, applications } = postgresStores({ pool: counting, schema })
    const ids = Array.from({ length: 30 }, (_, at) => `key-${at % 10}\0`)
    const key = { app: 'app', hash: 'h', label: null, createdAt: 1, expiresAt: null }
    for (const id of new Set(ids.slice(1))) await applications.putKey({ ...key, id })
    const { job } = await jobs.create(sampleJob({ id: randomUUID() }))
    statements.length = 0

    const found = await Promise.all(['none', ...ids].map((id) => applications.getKey(id)))
    assert.deepEqual(
      found.map((one) => one?.id),
      [undefined, ...ids],
    )
    const read = await Promise.all(['none', job.id, job.id].map((id) => jobs.get(id)))
    assert.deepEqual(
      read.map((one) => one?.id),
      [undefined, job.id, job.id],
    )
    assert.equal(statements.length, 2)
  })
})
