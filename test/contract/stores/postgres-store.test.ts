import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { Pool } from 'pg'
import { afterAll, beforeEach, describe, test, vi } from 'vitest'
import { applicationStoreContract } from '../../../src/contract/application-store.js'
import { cancel, sampleJob, sampleOutputs, succeed } from '../../../src/contract/job-samples.js'
import { postgresStores } from '../../../src/adapters/postgres.js'
import { countQueued } from '../../../src/adapters/stores/postgres/create-limits.js'
import type { PostgresQuery } from '../../../src/adapters/stores/postgres/database.js'
import { steps } from '../../../src/adapters/stores/postgres/migrations.js'
import { StemworkError } from '../../../src/core/engine/errors.js'
import { describeWith } from '../../servers/found-server.js'
import { findPostgres, startPostgres } from '../../servers/postgres.js'
import { ownSchema } from './postgres-schema.js'

const postgres = await findPostgres()
const own = await startPostgres()

describeWith('postgresStores', { postgres }, ({ postgres: server }) => {
  const { pool, schema } = ownSchema(server)
  const stores = () => postgresStores({ pool, schema })

  beforeEach(
    async () =>
      void (await pool.query(`TRUNCATE ${schema}.jobs, ${schema}.turns, ${schema}.applications, ${schema}.api_keys`)),
  )

  applicationStoreContract(
    { describe, test },
    { open: async () => ({ store: stores().applications, async close() {} }) },
  )

  test('nodes that migrate at the same time all find the tables made, once', async () => {
    const fresh = `${schema.slice(0, 40)}_m`
    try {
      await Promise.all(Array.from({ length: 5 }, () => postgresStores({ pool, schema: fresh }).migrate()))
      await postgresStores({ pool, schema: fresh }).migrate()
      const { rows } = await pool.query<{ number: number }>(`SELECT number FROM ${fresh}.migrations`)
      assert.deepEqual(
        rows.map(({ number }) => number),
        steps.map((_, index) => index + 1),
      )
    } finally {
      await pool.query(`DROP SCHEMA IF EXISTS ${fresh} CASCADE`)
    }
  })

  test('tables of the first schema are brought up to date, and their waiting and lapsed jobs are claimed', async () => {
    const old = `${schema.slice(0, 40)}_o`
    try {
      await pool.query(`CREATE SCHEMA ${old}`)
      await pool.query(
        `CREATE TABLE ${old}.migrations (number integer PRIMARY KEY, applied_at timestamptz DEFAULT now())`,
      )
      for (const text of steps[0]?.statements(old) ?? []) await pool.query(text)
      await pool.query(`INSERT INTO ${old}.migrations VALUES (1)`)
      for (const [id, app, status, at] of [
        ['late', 'a', 'QUEUED', 3],
        ['early', 'b', 'QUEUED', 2],
        ['lapsed', 'c', 'STARTED', 4],
      ]) {
        const lease = status === 'STARTED' ? { owner: 'dead', token: 1, until: 4 } : null
        await pool.query(
          `INSERT INTO ${old}.jobs (id, version, app, status, deleted, workflow, created_at, waiting_since, lease_until,
            record)
          VALUES ($1, 1, $2, $3, false, 'w', 1, $4, $5, $6)`,
          [id, app, status, lease ? null : at, lease && at, { ...sampleJob({ createdAt: 1 }), id, app, status, lease }],
        )
      }
      const ended = sampleJob({ createdAt: 1, app: 'a', status: 'SUCCEEDED', name: '\0 Łódź' })
      ended.outputs = sampleOutputs('ended', 1)
      const bytes = Object.values(ended.outputs).reduce((sum, output) => sum + output.bytes, 0)
      await pool.query(
        `INSERT INTO ${old}.jobs (id, version, app, status, deleted, workflow, created_at, removable_at, record)
        VALUES ('ended', 1, 'a', 'SUCCEEDED', false, 'w', 1, 4e12, $1)`,
        [ended],
      )
      const { jobs, migrate } = postgresStores({ pool, schema: old })
      await migrate()
      // Computed for a row that an older node has written, and may still write.
      assert.equal(await jobs.resultBytes('a'), bytes)
      assert.equal(await jobs.count({ app: 'a', search: 'lodz' }), 1)
      const claimed: (string | undefined)[] = []
      for (let n = 0; n < 4; n++) claimed.push((await jobs.claim({ owner: 'w', leaseMs: 60_000 }))?.id)
      assert.deepEqual(claimed, ['lapsed', 'early', 'late', undefined])
    } finally {
      await pool.query(`DROP SCHEMA IF EXISTS ${old} CASCADE`)
    }
  })

  test('jobs that an older node adds are found, even by nodes that search at the same time', async () => {
    const { jobs } = stores()
    await jobs.createAll(Array.from({ length: 1200 }, (_, n) => sampleJob({ name: `Łódź ${n}` })))
    // An older node does not know the column.
    await pool.query(`UPDATE ${schema}.jobs SET search = NULL`)
    const searches = [1, 2, 3].map(() => stores().jobs.count({ app: 'app-1', search: 'lodz' }))
    assert.deepEqual(await Promise.all(searches), [1200, 1200, 1200])
    assert.equal((await jobs.list({ search: '1199 LODZ', limit: 9 })).length, 1)
  })

  test('the statements of every job are planned once a connection, not each time', async () => {
    const one = new Pool({ connectionString: server.url, max: 1 })
    try {
      const { jobs } = postgresStores({ pool: one, schema })
      for (let n = 0; n < 5; n++) {
        const { job } = await jobs.create(sampleJob())
        await jobs.get(job.id)
        assert.ok(await jobs.claim({ id: job.id, owner: 'w', leaseMs: 1000 }))
      }
      const { rows } = await one.query<{ name: string; runs: string }>(
        'SELECT name, generic_plans + custom_plans AS runs FROM pg_prepared_statements',
      )
      // One create, one update, and one read each for get and claim.
      assert.deepEqual(
        rows.map(({ runs }) => Number(runs)).sort((a, b) => a - b),
        [5, 5, 10],
      )
      assert.ok(rows.every(({ name }) => name.startsWith('stemwork_')))
    } finally {
      await one.end()
    }
  })

  test('common lists are planned once a connection, and rare filters leave no statements there', async () => {
    const one = new Pool({ connectionString: server.url, max: 1 })
    const planned = async () => {
      const { rows } = await one.query<{ runs: string }>(
        'SELECT generic_plans + custom_plans AS runs FROM pg_prepared_statements',
      )
      return rows.map(({ runs }) => Number(runs))
    }
    try {
      const { jobs } = postgresStores({ pool: one, schema })
      const after = { createdAt: Date.now(), id: 'z' }
      for (let n = 0; n < 10; n++) {
        await jobs.list({ app: 'app-1', limit: 8, after })
        await jobs.count({ app: 'app-1' }, { max: 100 })
      }
      assert.deepEqual(await planned(), [10, 10])
      await jobs.list({ app: 'app-1', limit: 8, batchName: 'rare' })
      await jobs.list({ app: 'app-1', limit: 8, uploadKey: 'rare' })
      await jobs.count({ app: 'app-1', createdAfter: 1 })
      assert.equal((await planned()).length, 2)
      // Nor do the same statuses in other orders or with repetitions.
      for (let n = 1; n <= 6; n++) {
        const statuses = Array.from({ length: n + 1 }, (_, at) => ((at + n) % 2 ? 'FAILED' : 'SUCCEEDED'))
        await jobs.count({ app: 'app-1', statuses }, { max: 100 })
        await jobs.list({ statuses, limit: 8 })
      }
      assert.equal((await planned()).length, 4)
    } finally {
      await one.end()
    }
  })

  test('a job takes four statements: a create, a claim, a heartbeat, its end', async () => {
    let statements = 0
    const counting = {
      query: (query: { text: string }) => {
        statements++
        return pool.query(query)
      },
      connect: () => pool.connect(),
    } as unknown as Pool
    const { jobs } = postgresStores({ pool: counting, schema })
    // Creates a job with every limit, and with the look-up of its key.
    await jobs.create(sampleJob({ idempotency: { key: 'k', digest: 'd' } }), { maxQueued: 9, quota: { jobs: 9 } })
    const job = await jobs.claim({ owner: 'w', leaseMs: 60_000, nonce: 'n' })
    assert.ok(job)
    const claim = { token: job.token, nonce: 'n' }
    const beat = { kind: 'heartbeat', leaseMs: 60_000, progress: 0.5, stage: 's', ...claim } as const
    assert.equal((await jobs.apply(job.id, beat))?.progress, 0.5)
    assert.equal((await jobs.apply(job.id, succeed(job, claim)))?.status, 'SUCCEEDED')
    assert.equal(statements, 4)
  })

  test('ends that come while others are written are one statement, however many', async () => {
    const queries: { text: string; answer: () => void }[] = []
    const waiting = {
      query: (query: { text: string }) => {
        if (!query.text.includes('.end_claims_')) return pool.query(query)
        return new Promise((resolve) => {
          queries.push({ text: query.text, answer: () => resolve(pool.query(query)) })
        })
      },
      connect: () => pool.connect(),
    } as unknown as Pool
    const { jobs } = postgresStores({ pool: waiting, schema })
    const ends: Promise<unknown>[] = []
    for (let n = 0; n < 6; n++) {
      await jobs.create(sampleJob())
      const job = await jobs.claim({ owner: 'w', leaseMs: 60_000, nonce: 'n' })
      assert.ok(job)
      ends.push(jobs.apply(job.id, succeed(job, { token: job.token, nonce: 'n' })))
    }
    assert.equal(queries.length, 1)
    queries[0]!.answer()
    await ends[0]
    while (queries.length < 2) await new Promise(setImmediate)
    queries[1]!.answer()
    assert.ok((await Promise.all(ends)).every(Boolean))
    assert.equal(queries.length, 2)
  })

  test('the end of a job that was claimed here adds to the ledger what the trigger adds, without it', async () => {
    const [here, elsewhere] = [stores().jobs, stores().jobs]
    const ended: { id: string; entry: Record<string, unknown> }[] = []
    for (const store of [here, elsewhere]) {
      const { job } = await here.create(sampleJob())
      const claimed = await here.claim({ owner: 'w', leaseMs: 60_000, nonce: 'n' })
      assert.equal(claimed?.id, job.id)
      if (store === here) await pool.query(`ALTER TABLE ${schema}.jobs DISABLE TRIGGER jobs_settled`)
      const details = { model: { name: 'a\u0000\\u0000"' } }
      const used = { bytes: 12, audioSeconds: 1.5, processorSeconds: 0.25 }
      assert.ok(await store.apply(job.id, succeed(claimed, { nonce: 'n', details, used })))
      await pool.query(`ALTER TABLE ${schema}.jobs ENABLE TRIGGER jobs_settled`)
      const { rows } = await pool.query(`SELECT * FROM ${schema}.ledger WHERE id = $1`, [`${job.id}/0`])
      assert.equal(rows.length, 1)
      ended.push(rows[0])
    }
    const [first, second] = ended.map(({ id, entry, ...columns }) => {
      const { id: entryId, jobId, endedAt, runMs, ...fields } = entry
      assert.deepEqual([entryId, `${String(jobId)}/0`], [id, id])
      assert.deepEqual([typeof endedAt, typeof runMs], ['number', 'number'])
      return { ...columns, ended_at: '', fields }
    })
    assert.deepEqual(first, second)
    assert.equal(first?.fields['model'], 'a\ufffd\\u0000"')
  })

  test('a worker whose claim the database has lost changes nothing under the claim that replaced it', async () => {
    const [first, second] = [stores().jobs, stores().jobs]
    const { job } = await first.create(sampleJob())
    const { rows } = await pool.query<Record<string, unknown>>(`SELECT * FROM ${schema}.jobs`)
    const lost = await first.claim({ owner: 'first', leaseMs: 60_000, nonce: 'a' })
    // Simulates a failover to a server that lacks the last commits.
    await pool.query(
      `UPDATE ${schema}.jobs SET version = $1, status = 'QUEUED', waiting_since = $2, lease_until = NULL, nonce = ` +
        'NULL, claims = NULL',
      [rows[0]?.version, rows[0]?.waiting_since],
    )
    const held = await second.claim({ owner: 'second', leaseMs: 60_000, nonce: 'b' })
    assert.ok(lost && held)
    assert.equal(lost.token, held.token)
    for (const change of [
      { kind: 'heartbeat', leaseMs: 60_000, progress: 0.9, stage: 's', token: 1, nonce: 'a' } as const,
      succeed(lost, { nonce: 'a' }),
    ])
      assert.equal(await first.apply(job.id, change), undefined)
    assert.equal((await second.apply(job.id, succeed(held, { nonce: 'b' })))?.status, 'SUCCEEDED')
  })

  test('a change by another process is seen by the worker that has claimed the job', async () => {
    const [worker, other] = [stores().jobs, stores().jobs]
    await worker.create(sampleJob())
    const job = await worker.claim({ owner: 'w', leaseMs: 60_000, nonce: 'n' })
    assert.ok(job)
    await other.apply(job.id, cancel())
    const beat = { kind: 'heartbeat', leaseMs: 60_000, progress: 0.5, stage: 's', token: 1, nonce: 'n' } as const
    assert.equal((await worker.apply(job.id, beat))?.cancelRequested, true)
    await other.apply(job.id, { kind: 'delete' })
    assert.equal(await worker.apply(job.id, beat), undefined)
  })

  test('a store whose tables were not made says so', async () => {
    const { jobs } = postgresStores({ pool, schema: 'test_never_made' })
    await assert.rejects(
      jobs.get('x'),
      (error) =>
        StemworkError.is(error) &&
        error.code === 'STORE_UNAVAILABLE' &&
        /migrate\(\)/.test(error.message) &&
        !error.retryable,
    )
  })

  test('the error for a refused sign-in or an unknown database says what to check', async () => {
    const refused = async (refusing: Parameters<typeof postgresStores>[0]['pool'], words: RegExp) =>
      assert.rejects(
        postgresStores({ pool: refusing }).jobs.get('x'),
        (error) => StemworkError.is(error) && error.code === 'STORE_UNAVAILABLE' && words.test(error.message),
      )
    const other = async (change: (url: URL) => void, words: RegExp, there = server.url) => {
      const url = new URL(there.replace('@/', '@localhost/'))
      change(url)
      const elsewhere = new Pool({ connectionString: url.href })
      await refused(elsewhere, words)
      await elsewhere.end()
    }
    await other((url) => void (url.pathname = '/never_made'), /no such database/)
    await other((url) => void (url.username = 'nobody_at_all'), /refuses (this user|the user or the password)/)
    const strict = await startPostgres('right')
    assert(!('missing' in strict))
    try {
      for (const password of ['wrong', ''])
        await other((url) => void (url.password = password), /refuses the user or the password/, strict.url)
    } finally {
      await strict.release()
    }
  })

  test('tables of a newer version are refused', async () => {
    const fresh = `${schema.slice(0, 40)}_n`
    const { migrate } = postgresStores({ pool, schema: fresh })
    try {
      await migrate()
      await pool.query(`INSERT INTO ${fresh}.migrations (number) VALUES (1000)`)
      await assert.rejects(
        migrate(),
        (error) => StemworkError.is(error) && error.code === 'INVALID_OPTIONS' && /newer version/.test(error.message),
      )
    } finally {
      await pool.query(`DROP SCHEMA ${fresh} CASCADE`)
    }
  })

  test('a damaged record does not hide other jobs from the sweep', async () => {
    const { jobs } = stores()
    const [damaged, sound] = await Promise.all([jobs.create(sampleJob()), jobs.create(sampleJob())])
    for (const { job } of [damaged, sound]) await jobs.apply(job.id, { kind: 'delete' })
    await pool.query(`UPDATE ${schema}.jobs SET record = '{}' WHERE id = $1`, [damaged.job.id])
    assert.deepEqual(
      (await jobs.due('deleted', 10)).map(({ id }) => id),
      [sound.job.id],
    )
  })

  test('a schema name that is not a plain identifier is refused', () => {
    for (const name of ['', 'a"b', 'Upper', '1st', 'a b', 'x'.repeat(64)]) {
      assert.throws(
        () => postgresStores({ pool, schema: name }),
        (error) => StemworkError.is(error) && error.code === 'INVALID_OPTIONS',
      )
    }
  })

  test('a job inside a transaction of the host exists once that commits, and never if it is rolled back', async () => {
    const { jobs } = stores()
    for (const end of ['COMMIT', 'ROLLBACK'] as const) {
      const client = await pool.connect()
      const keyed = sampleJob({ idempotency: { key: `k-${end}`, digest: 'd' } })
      const plain = sampleJob()
      await client.query('BEGIN')
      assert.equal((await jobs.create(keyed, { tx: client })).created, true)
      assert.equal((await jobs.create(plain, { tx: client })).created, true)
      assert.equal(
        (await jobs.create({ ...keyed, id: randomUUID() }, { tx: client })).created,
        false,
        'the transaction sees its own key',
      )
      for (const { id } of [keyed, plain]) {
        assert.equal(await jobs.get(id), undefined)
        assert.equal(await jobs.claim({ id, owner: 'w', leaseMs: 1000 }), undefined)
      }
      const before = await jobs.count({})
      await client.query(end)
      client.release()
      const expected = end === 'COMMIT'
      assert.equal((await jobs.get(keyed.id))?.id === keyed.id, expected)
      assert.equal((await jobs.claim({ id: plain.id, owner: 'w', leaseMs: 1000 }))?.status === 'STARTED', expected)
      assert.equal(await jobs.count({}), before + (expected ? 2 : 0))
    }
  })

  test('an open transaction that holds an idempotency key keeps no other job waiting', async () => {
    const { jobs } = stores()
    const client = await pool.connect()
    await client.query('BEGIN')
    const held = sampleJob({ idempotency: { key: 'held', digest: 'd' } })
    await jobs.create(held, { tx: client })
    const waiting = jobs.create(sampleJob({ idempotency: { key: 'held', digest: 'd' } }))
    assert.equal((await jobs.create(sampleJob())).created, true)
    await client.query('COMMIT')
    client.release()
    const { job, created } = await waiting
    assert.deepEqual([job.id, created], [held.id, false])
  })

  test.each(['read committed', 'serializable'])(
    'limits hold exactly over nodes that create at the same time (%s)',
    async (isolation) => {
      const options = `-c default_transaction_isolation=${isolation.replace(' ', '\\ ')}`
      const pools = Array.from({ length: 3 }, () => new Pool({ connectionString: server.url, max: 5, options }))
      try {
        const nodes = pools.map((one) => postgresStores({ pool: one, schema }).jobs)
        const outcomes = await Promise.allSettled(
          Array.from({ length: 300 }, (_, n) =>
            nodes[n % 3]!.create(
              sampleJob({ app: `app-${n % 2}`, ...(n % 5 === 0 && { idempotency: { key: `k${n}`, digest: 'd' } }) }),
              {
                maxQueued: 20,
              },
            ),
          ),
        )
        for (const outcome of outcomes)
          if (outcome.status === 'rejected') assert.equal((outcome.reason as StemworkError).code, 'QUEUE_FULL')
        for (const app of ['app-0', 'app-1']) assert.equal(await nodes[0]!.count({ app }), 20)
        assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 40)
      } finally {
        await Promise.all(pools.map((one) => one.end()))
      }
    },
  )

  // The limit uses no counter: claims, ends and nodes of earlier versions would have to update it for each job.
  test('the limit of queued jobs is counted in an index, as far as the limit and no further', async () => {
    const { jobs } = stores()
    await jobs.createAll(Array.from({ length: 2000 }, () => sampleJob({ app: 'a' })))
    // Only a vacuumed table needs just the index, and only while no other test's transaction may see older rows.
    await vi.waitFor(
      async () => {
        await pool.query(`VACUUM ANALYZE ${schema}.jobs`)
        const { rows } = await pool.query(
          `SELECT relallvisible = relpages AS done FROM pg_class WHERE oid = '${schema}.jobs'::regclass`,
        )
        assert.deepEqual(rows, [{ done: true }])
      },
      { timeout: 20_000, interval: 50 },
    )
    const read: number[] = []
    // Plans as for a larger table.
    const ofMany = new Pool({ connectionString: server.url, options: '-c enable_seqscan=off' })
    const explaining = {
      async query(query: PostgresQuery) {
        const { rows } = await ofMany.query<[[{ Plan: object }]]>({
          ...query,
          text: `EXPLAIN (ANALYZE, FORMAT json) ${query.text}`,
        })
        const plan = JSON.stringify(rows)
        assert.match(plan, /Index Only Scan/)
        read.push(Math.max(...[...plan.matchAll(/\\?"Actual Rows\\?": ?(\d+)/g)].map(([, count]) => Number(count))))
        return { rows: [['0']] }
      },
    }
    for (const limit of [1, 100, 5000]) await countQueued(explaining, schema, 'a', limit)
    await ofMany.end()
    assert.deepEqual(read, [1, 100, 2000])
  })

  test("the limit of queued jobs makes no create wait for a host's transaction or another application", async () => {
    const { jobs } = stores()
    const limit = { maxQueued: 2 }
    const client = await pool.connect()
    await client.query('BEGIN')
    await jobs.create(sampleJob(), { tx: client, ...limit })
    const keyed = sampleJob({ idempotency: { key: 'held', digest: 'd' } })
    await jobs.create(keyed, { tx: client, ...limit })
    await assert.rejects(
      jobs.create(sampleJob(), { tx: client, ...limit }),
      (error) => StemworkError.is(error) && error.code === 'QUEUE_FULL',
    )
    // Uncommitted jobs are not counted by others.
    const waiting = jobs.create(sampleJob({ idempotency: { key: 'held', digest: 'd' } }), limit)
    assert.equal((await jobs.create(sampleJob(), limit)).created, true)

    const stopped = await pool.connect()
    await stopped.query('BEGIN')
    await stopped.query(`SELECT pg_advisory_xact_lock($1::int, hashtext($2))`, [0x57e4, `${schema} app-1`])
    assert.equal((await jobs.create(sampleJob({ app: 'app-2' }), limit)).created, true)
    const held = jobs.create(sampleJob(), limit)
    assert.equal((await jobs.create(sampleJob({ app: 'app-2' }), limit)).created, true)
    await stopped.query('COMMIT')
    stopped.release()
    assert.equal((await held).created, true)

    await client.query('COMMIT')
    client.release()
    assert.deepEqual((await waiting).created, false)
  })

  test('a transaction that is not a pg client is refused', async () => {
    for (const tx of [{}, 'tx', 1, null, { query: 1 }]) {
      await assert.rejects(
        stores().jobs.create(sampleJob(), { tx }),
        (error) => StemworkError.is(error) && error.code === 'INVALID_OPTIONS',
      )
    }
  })

  test('a job that the database refuses fails alone, not those that are created with it', async () => {
    const { jobs } = stores()
    const incompressible = Array.from({ length: 300 }, () => randomUUID()).join('')
    const results = await Promise.allSettled(
      [sampleJob(), sampleJob({ batchName: incompressible }), sampleJob()].map((job) => jobs.create(job)),
    )
    assert.deepEqual(
      results.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    )
    const [, refused] = results
    assert.ok(
      refused!.status === 'rejected' && StemworkError.is(refused!.reason) && refused!.reason.code === 'TOO_LARGE',
    )
  })

  test('text that Postgres cannot hold is kept as it was sent', async () => {
    const { jobs } = stores()
    const text = 'nul \0 lone \ud800 end'
    const { job } = await jobs.create(
      sampleJob({ name: text, batchName: text, params: { text }, idempotency: { key: text, digest: text } }),
    )
    assert.deepEqual([job.name, job.params, job.batchName], [text, { text }, text])
    const read = await jobs.get(job.id)
    assert.deepEqual([read?.name, read?.params, read?.batchName, read?.idempotency?.key], [text, { text }, text, text])
    assert.deepEqual(
      (await jobs.list({ app: job.app, batchName: text, limit: 5 })).map(({ id }) => id),
      [job.id],
    )
    assert.equal(await jobs.get('\0'), undefined)
  })

  test('a job with text that Postgres cannot hold ends as others do', async () => {
    const { jobs } = stores()
    const { job } = await jobs.create(
      sampleJob({ app: 'broken-texts', name: 'nul \0 lone \ud800\udc00\udbff end \\ud800', metadata: { a: '\udfff' } }),
    )
    const error = {
      code: 'CANCELED',
      title: '',
      reason: 'canceled',
      message: 'canceled \ud800',
      retryable: false,
    } as const
    const ended = await jobs.apply(job.id, { kind: 'cancel', error, retentionMs: 1000, messages: [] })
    assert.equal(ended?.status, 'FAILED')
    assert.deepEqual((await jobs.get(job.id))?.error, ended?.error)
    const days = { fromDay: 0, toDay: 1e5, app: job.app, limit: 5 }
    assert.deepEqual(
      (await jobs.ledger?.entries(days))?.map(({ jobId }) => jobId),
      [job.id],
    )
  })

  test('two nodes that claim the next job at the same time get different ones', async () => {
    const nodes = [stores().jobs, stores().jobs, stores().jobs]
    const made = await Promise.all(Array.from({ length: 60 }, () => nodes[0]!.create(sampleJob())))
    const claimed: string[] = []
    await Promise.all(
      nodes.flatMap((jobs, node) =>
        Array.from({ length: 4 }, async () => {
          for (;;) {
            const job = await jobs.claim({ owner: `node-${node}`, leaseMs: 60_000 })
            if (job) claimed.push(job.id)
            else return
          }
        }),
      ),
    )
    assert.deepEqual(claimed.sort(), made.map(({ job }) => job.id).sort())
  })

  test('a change that was computed from an outdated record is computed again, not written', async () => {
    const [here, there] = [stores().jobs, stores().jobs]
    const { job } = await here.create(sampleJob())
    const first = await there.claim({ id: job.id, owner: 'there', leaseMs: 60_000 })
    assert.ok(first)
    assert.equal(await here.claim({ id: job.id, owner: 'here', leaseMs: 60_000 }), undefined)
    await here.apply(job.id, { kind: 'delete' })
    assert.equal(await there.apply(job.id, succeed(first)), undefined)
    assert.equal(await there.get(job.id), undefined)
  })

  test('a row that is not a job record is an error, never an absent job', async () => {
    const { jobs } = stores()
    const { job } = await jobs.create(sampleJob())
    await pool.query(`UPDATE ${schema}.jobs SET record = '{"id":1}' WHERE id = $1`, [job.id])
    await assert.rejects(jobs.get(job.id), (error) => StemworkError.is(error) && error.code === 'STORE_UNAVAILABLE')
  })

  test('type parsers of the host change nothing', async () => {
    const spoiled = { getTypeParser: () => () => 'spoiled' }
    const spoiledPool = new Pool({ connectionString: server.url, types: spoiled })
    try {
      const { jobs } = postgresStores({ pool: spoiledPool, schema })
      const { job } = await jobs.create(sampleJob())
      assert.deepEqual(await jobs.get(job.id), job)
      assert.equal(await jobs.count({}), 1)
    } finally {
      await spoiledPool.end()
    }
  })
})

describeWith('postgresStores on a server that goes away', { own }, ({ own: server }) => {
  afterAll(() => server.release())

  test('an outage is an error, never an absent job, and the store works again after it', async () => {
    const pool = new Pool({ connectionString: server.url, connectionTimeoutMillis: 2000 })
    const { jobs, applications, migrate } = postgresStores({ pool })
    await migrate()
    const { job } = await jobs.create(sampleJob())
    const claimed = await jobs.claim({ id: job.id, owner: 'w', leaseMs: 60_000 })
    assert.ok(claimed)
    await server.kill()
    const isOutage = (error: unknown) =>
      StemworkError.is(error) && error.code === 'STORE_UNAVAILABLE' && error.retryable && error.cause !== undefined
    await assert.rejects(jobs.get(job.id), isOutage)
    await assert.rejects(jobs.get('unknown'), isOutage)
    await assert.rejects(jobs.list({ limit: 1 }), isOutage)
    await assert.rejects(jobs.count({}), isOutage)
    await assert.rejects(jobs.create(sampleJob()), isOutage)
    await assert.rejects(jobs.claim({ owner: 'w', leaseMs: 1 }), isOutage)
    await assert.rejects(jobs.apply(job.id, succeed(claimed)), isOutage)
    await assert.rejects(jobs.due('lapsed', 1), isOutage)
    await assert.rejects(jobs.purge({ id: job.id }), isOutage)
    await assert.rejects(applications.getApplication('a'), isOutage)
    await server.start()
    assert.deepEqual(await jobs.get(job.id), claimed)
    assert.equal((await jobs.apply(job.id, succeed(claimed)))?.status, 'SUCCEEDED')
    assert.equal(await jobs.count({}), 1)
    await pool.end()
  })
})
