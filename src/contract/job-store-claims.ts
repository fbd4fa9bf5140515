import assert from 'node:assert/strict'
import { leaseMs, type JobStoreContext } from './job-store-context.js'
import { cancel, fail, heartbeat, requeue, sampleJob, succeed } from './job-samples.js'
import type { Cases } from './suite.js'

const worker = { owner: 'worker', leaseMs }

export const claimCases = {
  async 'of eight simultaneous claims of one job one wins'({ store }) {
    for (let round = 0; round < 20; round++) {
      const { job } = await store.create(sampleJob())
      const results = await Promise.all(
        Array.from({ length: 8 }, (_, n) => store.claim({ id: job.id, owner: `worker-${n}`, leaseMs })),
      )
      const winners = results.filter((result) => result !== undefined)
      assert.equal(winners.length, 1)
      const [winner] = winners
      assert.deepEqual([winner?.token, winner?.attempts], [1, 1])
      assert.deepEqual(await store.get(job.id), winner)
    }
  },

  async 'simultaneous claims of the next job get each job once'({ store }) {
    for (let n = 0; n < 12; n++) await store.create(sampleJob())
    const results = await Promise.all(Array.from({ length: 20 }, () => store.claim(worker)))
    const got = results.filter((result) => result !== undefined)
    assert.equal(got.length, 12)
    assert.equal(new Set(got.map((job) => job.id)).size, 12)
    assert.equal(await store.claim(worker), undefined)
  },

  async 'the job that has waited longest is claimed first'({ store, advance }) {
    const ids: string[] = []
    for (let n = 0; n < 3; n++) {
      ids.push((await store.create(sampleJob())).job.id)
      await advance(20)
    }
    const first = await store.claim(worker)
    assert.ok(first)
    assert.equal(first.id, ids[0])
    // A retry waits anew: behind the jobs that are waiting already.
    await store.apply(first.id, requeue(1))
    assert.equal((await store.claim(worker))?.id, ids[1])
    assert.equal((await store.claim(worker))?.id, ids[2])
    assert.equal((await store.claim(worker))?.id, ids[0])
  },

  async 'an empty store has nothing to claim'({ store }) {
    assert.equal(await store.claim(worker), undefined)
  },

  async 'a held lease is not granted again until it runs out, then with the next token'({ store, advance }) {
    const { job } = await store.create(sampleJob())
    const first = await store.claim({ ...worker, id: job.id })
    assert.equal(await store.claim({ ...worker, id: job.id }), undefined)
    assert.equal(await store.claim(worker), undefined)
    await advance(leaseMs + 100)
    const second = await store.claim({ owner: 'second', leaseMs, id: job.id })
    assert.deepEqual([first?.token, second?.token, second?.attempts, second?.lease?.owner], [1, 2, 2, 'second'])
    assert.equal(second?.startedAt, first?.startedAt, 'startedAt is when the first worker took the job')
    await advance(leaseMs + 100)
    assert.equal((await store.claim(worker))?.token, 3)
  },

  async 'of eight simultaneous claims of a lapsed lease one wins'({ store, advance }) {
    const { job } = await store.create(sampleJob())
    await store.claim({ ...worker, id: job.id })
    await advance(leaseMs + 100)
    const results = await Promise.all(
      Array.from({ length: 8 }, (_, n) => store.claim(n % 2 ? worker : { ...worker, id: job.id })),
    )
    assert.deepEqual(
      results.filter((result) => result !== undefined).map((result) => result.token),
      [2],
    )
  },

  async 'a heartbeat keeps the lease beyond its first time'({ store, advance }) {
    const { job } = await store.create(sampleJob())
    // Twice as long as elsewhere: a store on real time has to be asked again before the second lease runs out.
    const long = 2 * leaseMs
    await store.claim({ ...worker, id: job.id, leaseMs: long })
    await advance(long * 0.7)
    assert.ok(await store.apply(job.id, heartbeat(1, { leaseMs: long })))
    await advance(long * 0.7)
    assert.equal(await store.claim({ ...worker, id: job.id }), undefined)
    assert.deepEqual(await store.due('claimable', 10), [])
  },

  async 'a superseded worker changes nothing'({ store, advance }) {
    const { job } = await store.create(sampleJob())
    const first = await store.claim({ ...worker, id: job.id })
    await advance(leaseMs + 100)
    const second = await store.claim({ ...worker, id: job.id })
    assert.ok(first && second)
    for (const change of [
      heartbeat(first.token),
      succeed(first),
      fail(first.token),
      requeue(first.token),
      requeue(first.token, { onShutdown: true }),
    ]) {
      assert.equal(await store.apply(job.id, change), undefined, `${change.kind} of a superseded worker was accepted`)
      assert.deepEqual(await store.get(job.id), second)
    }
    const done = await store.apply(job.id, succeed(second))
    assert.equal(done?.status, 'SUCCEEDED')
    assert.equal(await store.apply(job.id, fail(first.token)), undefined)
    assert.deepEqual(await store.get(job.id), done)
  },

  async 'a token from the future changes nothing'({ store }) {
    const { job } = await store.create(sampleJob())
    const held = await store.claim({ ...worker, id: job.id })
    for (const change of [heartbeat(2), succeed({ id: job.id, token: 2 }), fail(2), requeue(2)])
      assert.equal(await store.apply(job.id, change), undefined)
    assert.deepEqual(await store.get(job.id), held)
  },

  async 'a lapsed lease that nobody took over still settles'({ store, advance }) {
    const { job } = await store.create(sampleJob())
    const held = await store.claim({ ...worker, id: job.id })
    await advance(leaseMs + 100)
    assert.ok(held)
    assert.equal((await store.apply(job.id, succeed(held)))?.status, 'SUCCEEDED')
    assert.equal(await store.claim(worker), undefined)
  },

  async 'a requeued job is not claimed before its time'({ store, advance }) {
    const { job } = await store.create(sampleJob())
    await store.claim({ ...worker, id: job.id })
    await store.apply(job.id, requeue(1, { delayMs: leaseMs }))
    assert.equal(await store.claim({ ...worker, id: job.id }), undefined)
    assert.equal(await store.claim(worker), undefined)
    await advance(leaseMs + 100)
    assert.equal((await store.claim(worker))?.token, 2)
  },

  async 'a new job with a later notBefore waits'({ store, advance }) {
    const { job } = await store.create(sampleJob())
    const { job: later } = await store.create(sampleJob({ notBefore: job.createdAt + leaseMs }))
    assert.equal(await store.claim({ ...worker, id: later.id }), undefined)
    assert.equal((await store.claim(worker))?.id, job.id)
    assert.equal(await store.claim(worker), undefined)
    await advance(leaseMs + 100)
    assert.equal((await store.claim({ ...worker, id: later.id }))?.id, later.id)
  },

  async 'a claim and a cancel at the same time agree'({ store }) {
    for (let round = 0; round < 10; round++) {
      const { job } = await store.create(sampleJob())
      const [claimed, canceled] = await Promise.all([
        store.claim({ ...worker, id: job.id }),
        store.apply(job.id, cancel()),
      ])
      const now = await store.get(job.id)
      if (claimed) assert.deepEqual([now?.status, now?.cancelRequested, canceled?.status], ['STARTED', true, 'STARTED'])
      else assert.deepEqual([now?.status, canceled?.status], ['FAILED', 'FAILED'])
    }
  },
} satisfies Cases<JobStoreContext>
