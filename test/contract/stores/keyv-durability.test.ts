import { EventEmitter } from 'node:events'
import { Keyv } from 'keyv'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { faultOnce, withFaults } from '../../../src/contract/faults.js'
import { cancel, fullJob, heartbeat, sampleJob, succeed } from '../../../src/contract/job-samples.js'
import { randomSource } from '../../../src/contract/random-source.js'
import { keyvApplications } from '../../../src/adapters/stores/keyv/keyv-applications.js'
import { keyvJobs } from '../../../src/adapters/stores/keyv/keyv-jobs.js'
import { StemworkError } from '../../../src/core/engine/errors.js'
import type { JobStore } from '../../../src/core/engine/ports/job-store.js'
import { DelayingMap } from './delaying-map.js'
import { settableClock } from './settable-clock.js'

const unavailable = { code: 'STORE_UNAVAILABLE', retryable: true }

describe('a restart of the process that owns a Keyv store', () => {
  test('finds every job, in order, with its lease, its key and what is due', async () => {
    const store = new Map()
    const { clock, advance } = settableClock()
    const reopen = () => keyvJobs({ keyv: new Keyv({ store }), clock })
    const before = reopen()
    for (let n = 0; n < 1203; n++) {
      await before.create(sampleJob({ app: `app-${n % 3}`, idempotency: { key: `k${n}`, digest: 'd' } }))
      if (n % 10 === 0) advance(1)
    }
    const [running, done, deleted, purged] = await before.list({ limit: 4 })
    const lease = { owner: 'w', leaseMs: 1000 }
    await before.claim({ id: running!.id, ...lease })
    await before.claim({ id: done!.id, ...lease })
    await before.apply(
      done!.id,
      succeed(
        { id: done!.id, token: 1 },
        { messages: [{ id: 'm', url: 'https://example.com', event: 'job.succeeded' }] },
      ),
    )
    for (const job of [deleted, purged]) await before.apply(job!.id, { kind: 'delete' })
    await before.purge({ id: purged!.id })

    const after = reopen()
    expect(await after.list({ limit: 5000 })).toEqual(await before.list({ limit: 5000 }))
    expect(await after.count({ app: 'app-1' })).toBe(await before.count({ app: 'app-1' }))
    expect((await after.create(sampleJob({ app: running!.app, idempotency: running!.idempotency }))).job.id).toBe(
      running!.id,
    )
    expect((await after.due('deleted', 9)).map(({ id }) => id)).toEqual([deleted!.id])
    expect((await after.deliverable({ limit: 9, perApp: 9, exceptApps: [] })).map(({ id }) => id)).toEqual([done!.id])
    expect(await after.claim({ id: running!.id, ...lease })).toBeUndefined()
    advance(1001)
    expect((await after.claim({ id: running!.id, ...lease }))?.token).toBe(2)
    expect(
      await before.apply(running!.id, succeed({ id: running!.id, token: 1 })),
      'the process before it is fenced off',
    ).toBeUndefined()
  })

  test('lists what was created and not deleted after hundreds of concurrent operations on a slow backend', async () => {
    const random = randomSource(11)
    const backend = new DelayingMap(random, 4)
    const jobs = keyvJobs({ keyv: new Keyv({ store: backend }) })
    const created: string[] = []
    const gone = new Set<string>()
    const tokens = new Set<string>()
    await Promise.all(
      Array.from({ length: 300 }, async () => {
        const { job } = await jobs.create(sampleJob())
        created.push(job.id)
        const held = await jobs.claim({ owner: 'w', leaseMs: 60_000 })
        if (held) {
          expect(tokens.has(`${held.id} ${held.token}`)).toBe(false)
          tokens.add(`${held.id} ${held.token}`)
          await Promise.all([
            jobs.apply(held.id, heartbeat(held.token)),
            jobs.apply(held.id, cancel()),
            jobs.apply(held.id, succeed(held)),
          ])
        }
        const other = created[Math.floor(random() * created.length)]
        if (random() < 0.4 && (await jobs.apply(other!, { kind: 'delete' }))) {
          gone.add(other!)
          const late = held && jobs.apply(other!, heartbeat(1))
          await Promise.all([late, jobs.purge({ id: other! }), jobs.apply(other!, cancel())])
        }
      }),
    )
    const expected = created.filter((id) => !gone.has(id)).sort()
    expect(gone.size).toBeGreaterThan(50)
    for (const store of [jobs, keyvJobs({ keyv: new Keyv({ store: backend }) })]) {
      expect((await store.list({ limit: 1000 })).map(({ id }) => id).sort()).toEqual(expected)
      expect(await store.count({})).toBe(expected.length)
      for (const id of gone) expect(await store.get(id)).toBeUndefined()
      expect(await store.due('deleted', 1000)).toEqual([])
    }
  })

  test('skips a job whose creation was interrupted between the index and the record', async () => {
    const store = new DelayingMap(randomSource(1), 0)
    const first = keyvJobs({ keyv: new Keyv({ store }) })
    const { job } = await first.create(sampleJob())
    const dying = keyvJobs({
      keyv: new Keyv({
        store: withFaults(store, ({ method, args }) =>
          method === 'set' && String(args[0]).includes('/job/') ? new Error('power cut') : undefined,
        ),
      }),
    })
    await expect(dying.create(sampleJob())).rejects.toMatchObject(unavailable)
    const after = keyvJobs({ keyv: new Keyv({ store }) })
    expect((await after.list({ limit: 9 })).map(({ id }) => id)).toEqual([job.id])
    expect(await after.count({})).toBe(1)
    const claims = [await after.claim({ owner: 'w', leaseMs: 1000 }), await after.claim({ owner: 'w', leaseMs: 1000 })]
    expect(claims.map((job) => job !== undefined)).toEqual([true, false])
  })
})

describe('a Keyv backend that fails once', () => {
  /**
   * Takes one job from its creation to its end, retrying each step until the store answers; returns the answer at each
   * stage.
   */
  async function live(jobs: JobStore) {
    const job = fullJob({ id: 'job-1', createdAt: 0, idempotency: { key: 'k', digest: 'd' } })
    const stages: unknown[] = []
    stages.push((await answered(() => jobs.create(job))).job.id)
    let running = await answered(() => jobs.claim({ id: 'job-1', owner: 'w', leaseMs: 60_000 }))
    // A claim granted without an answer belongs to this caller, too.
    running ??= await answered(() => jobs.get('job-1'))
    expect(running?.lease?.token).toBe(1)
    await answered(() => jobs.apply('job-1', heartbeat(1)))
    stages.push((await answered(() => jobs.list({ limit: 9 }))).map(({ progress }) => progress))
    await answered(() => jobs.apply('job-1', succeed({ id: 'job-1', token: 1 })))
    stages.push(await answered(() => jobs.count({ statuses: ['SUCCEEDED'] })))
    stages.push((await answered(() => jobs.get('job-1')))?.outputs)
    await answered(() => jobs.apply('job-1', { kind: 'delete' }))
    stages.push(await answered(() => jobs.get('job-1')), (await answered(() => jobs.due('deleted', 9))).length)
    await answered(() => jobs.purge({ id: 'job-1' }))
    stages.push((await answered(() => jobs.due('deleted', 9))).length, await answered(() => jobs.count({})))
    stages.push(
      (await answered(() => jobs.create(sampleJob({ id: 'job-1', idempotency: { key: 'k', digest: 'd' } })))).job.name,
    )
    return stages
  }

  const expected = ['job-1', [0.5], 1, { vocals: expect.anything() }, undefined, 1, 0, 0, 'sample']

  for (const moment of ['before', 'after'] as const) {
    test(`${moment} any of its effects leaves one job in one state, here and after a restart`, async () => {
      let faults = 0
      for (const method of ['get', 'set', 'delete']) {
        for (let occurrence = 1; ; occurrence++) {
          const store = new DelayingMap(randomSource(1), 0)
          let struck = false
          const plan = faultOnce(method, moment, { occurrence })
          const faulty = withFaults(store, (call) => {
            const fault = plan(call)
            if (fault) struck = true
            return fault
          })
          const jobs = keyvJobs({ keyv: new Keyv({ store: faulty }) })
          expect(await live(jobs), `${method} ${occurrence}`).toEqual(expected)
          const restarted = keyvJobs({ keyv: new Keyv({ store }) })
          expect(await restarted.list({ limit: 9 })).toEqual(await answered(() => jobs.list({ limit: 9 })))
          expect(await restarted.count({})).toBe(1)
          if (!struck) break
          faults++
        }
      }
      expect(faults).toBeGreaterThan(15)
    })
  }
})

describe('a Keyv backend that is away', () => {
  const away = () => Promise.reject(new Error('connection refused'))
  const backends = {
    throws: { opts: {}, get: away, set: away, delete: away, clear: away },
    'throws also for many keys': { opts: {}, get: away, getMany: away, set: away, delete: away, clear: away },
    'reports the error as an event and answers "not there"': {
      opts: {},
      events: new EventEmitter(),
      on(event: string, listener: (error: Error) => void) {
        this.events.on(event, listener)
      },
      async get() {
        this.events.emit('error', new Error('connection refused'))
      },
      async set() {
        this.events.emit('error', new Error('connection refused'))
      },
      async delete() {
        this.events.emit('error', new Error('connection refused'))
        return false
      },
      clear: away,
    },
    'says that nothing was written': {
      opts: {},
      get: async () => undefined,
      set: async () => false,
      delete: async () => false,
      clear: away,
      getMany: away,
    },
    'never answers': {
      opts: {},
      get: () => new Promise(() => {}),
      set: () => new Promise(() => {}),
      delete: () => new Promise(() => {}),
      clear: away,
    },
  }

  for (const [name, store] of Object.entries(backends)) {
    test(`and ${name} is an error, never an absent job`, async () => {
      const jobs = keyvJobs({ keyv: new Keyv({ store }), timeoutMs: 50 })
      const applications = keyvApplications({ keyv: new Keyv({ store }), timeoutMs: 50 })
      await expect(jobs.create(sampleJob())).rejects.toMatchObject(unavailable)
      await expect(
        applications.putApplication({ id: 'a', name: 'a', createdAt: 1, webhook: null }),
      ).rejects.toMatchObject(unavailable)
      if (name === 'says that nothing was written') return
      for (const ask of [
        () => jobs.get('x'),
        () => jobs.list({ limit: 1 }),
        () => jobs.count({}),
        () => jobs.claim({ owner: 'w', leaseMs: 1 }),
        () => jobs.apply('x', { kind: 'delete' }),
        () => jobs.due('lapsed', 1),
        () => jobs.purge({ id: 'x' }),
        () => jobs.usage('a'),
        () => jobs.documents.get('kind', 'x'),
        () => jobs.documents.list('kind', { limit: 1 }),
        () => jobs.documents.due('kind', 1),
        () => jobs.documents.put({ kind: 'kind', key: 'x', value: 1, ttlMs: 1000 }),
        () => jobs.documents.delete('kind', 'x'),
        () =>
          jobs.createAll([sampleJob()], { document: { kind: 'kind', key: 'x', value: 1, ttlMs: 1000, version: 0 } }),
        () => jobs.ledger!.entries({ fromDay: 0, toDay: 1, limit: 1 }),
        () => jobs.rules(),
      ]) {
        await expect(ask()).rejects.toMatchObject(unavailable)
      }
      await expect(applications.getKey('x')).rejects.toMatchObject(unavailable)
      await expect(applications.listApplications()).rejects.toMatchObject(unavailable)
    })
  }

  test('keeps a known job known, and serves it when it is back', async () => {
    let down = false
    const store = new DelayingMap(randomSource(1), 0)
    const jobs = keyvJobs({
      keyv: new Keyv({ store: withFaults(store, () => (down ? new Error('connection refused') : undefined)) }),
    })
    const { job } = await jobs.create(sampleJob())
    down = true
    await expect(jobs.get(job.id)).rejects.toMatchObject({
      ...unavailable,
      cause: expect.objectContaining({ message: 'connection refused' }),
    })
    await expect(jobs.claim({ id: job.id, owner: 'w', leaseMs: 1 })).rejects.toMatchObject(unavailable)
    await expect(jobs.claim({ owner: 'w', leaseMs: 1 })).rejects.toMatchObject(unavailable)
    down = false
    expect(await jobs.get(job.id)).toEqual(job)
  })

  test('and answers a write after its caller gave up lets no other change of the record go first', async () => {
    const store = new DelayingMap(randomSource(1), 0)
    let release = () => {}
    let held: Promise<undefined> | undefined
    const keyv = new Keyv({
      store: withFaults(store, ({ method, moment }) => (method === 'set' && moment === 'before' ? held : undefined)),
    })
    const jobs = keyvJobs({ keyv, timeoutMs: 60 })
    const { job } = await jobs.create(sampleJob())
    held = new Promise((resolve) => (release = () => resolve(undefined)))
    await expect(jobs.claim({ id: job.id, owner: 'slow', leaseMs: 60_000 })).rejects.toMatchObject(unavailable)
    await expect(jobs.claim({ id: job.id, owner: 'other', leaseMs: 60_000 })).rejects.toMatchObject(unavailable)
    held = undefined
    release()
    expect(await jobs.claim({ id: job.id, owner: 'third', leaseMs: 60_000 })).toBeUndefined()
    expect((await jobs.get(job.id))?.lease).toMatchObject({ owner: 'slow', token: 1 })
  })
})

describe('a Keyv backend that loses data', () => {
  test('shows an older state, of which no token is granted again and no deletion undone', async () => {
    const store = new DelayingMap(randomSource(1), 0)
    const { clock, advance } = settableClock()
    const jobs = keyvJobs({ keyv: new Keyv({ store }), clock })
    const { job } = await jobs.create(sampleJob())
    const { job: other } = await jobs.create(sampleJob())
    const snapshot = new Map(store.entries)
    expect((await jobs.claim({ id: job.id, owner: 'w', leaseMs: 1000 }))?.token).toBe(1)
    await jobs.apply(other.id, { kind: 'delete' })
    for (const [key, value] of snapshot) store.entries.set(key, value)
    advance(1001)
    expect((await jobs.claim({ id: job.id, owner: 'w', leaseMs: 1000 }))?.token).toBe(2)
    expect(await jobs.get(other.id)).toBeUndefined()
    expect(await jobs.apply(other.id, cancel())).toBeUndefined()
  })

  test('that forgets all jobs shows none, and accepts new ones', async () => {
    const store = new DelayingMap(randomSource(1), 0)
    const jobs = keyvJobs({ keyv: new Keyv({ store }) })
    for (let n = 0; n < 5; n++) await jobs.create(sampleJob())
    store.entries.clear()
    expect(await jobs.list({ limit: 9 })).toEqual([])
    expect(await jobs.due('lapsed', 9)).toEqual([])
    expect(await jobs.claim({ owner: 'w', leaseMs: 1 })).toBeUndefined()
    const { job } = await jobs.create(sampleJob())
    expect(await keyvJobs({ keyv: new Keyv({ store }) }).list({ limit: 9 })).toContainEqual(job)
  })
})

describe('times to live', () => {
  test('of the host are not applied to jobs, and a tombstone outlives any lease', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    onTestFinished(() => void vi.useRealTimers())
    const store = new Map<string, string>()
    const jobs = keyvJobs({ keyv: new Keyv({ store, ttl: 1 }) })
    const { job } = await jobs.create(sampleJob())
    const expiries = () => [...store.values()].map((text) => (JSON.parse(text) as { expires?: number }).expires)
    expect(expiries()).toEqual([undefined, undefined, undefined])
    await jobs.apply(job.id, { kind: 'delete' })
    await jobs.purge({ id: job.id })
    const [end] = expiries().filter((time) => time !== undefined)
    expect(end).toBe(Date.now() + 24 * 60 * 60 * 1000)
  })

  test('of tombstones end with their removal from the backend and from the index', async () => {
    const store = new DelayingMap(randomSource(1), 0)
    const { clock, advance } = settableClock()
    const jobs = keyvJobs({ keyv: new Keyv({ store }), clock })
    const sizes: number[] = []
    for (let round = 0; round < 3; round++) {
      for (let n = 0; n < 100; n++) {
        const { job } = await jobs.create(sampleJob())
        await jobs.apply(job.id, { kind: 'delete' })
        await jobs.purge({ id: job.id })
      }
      advance(25 * 60 * 60 * 1000)
      while ((await jobs.purge({ endedBefore: 0, limit: 1 })).length > 0);
      sizes.push(store.entries.size)
    }
    // Sizes of the directory and of one page.
    expect(sizes).toEqual([2, 2, 2])
  })
})

async function answered<Result>(ask: () => Promise<Result>): Promise<Result> {
  for (let tries = 0; ; tries++) {
    try {
      return await ask()
    } catch (error) {
      if (!StemworkError.is(error) || error.code !== 'STORE_UNAVAILABLE' || tries > 2) throw error
    }
  }
}
