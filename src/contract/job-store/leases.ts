import assert from 'node:assert/strict'
import { assertNone } from '../broken-promise.js'
import { accepted, claimed, fail, heartbeat, requeue, sampleJob, succeed } from '../job-samples.js'
import { leaseMs, type JobStoreContext } from '../job-store-context.js'
import type { Cases } from '../suite.js'

const worker = { owner: 'worker', leaseMs }

export const leaseCases = {
  async 'a held lease is not granted again until it runs out, and then with the next token'({ store, advance }) {
    const { job } = await store.create(sampleJob())
    const first = await store.claim({ ...worker, id: job.id })
    assertNone(await store.claim({ ...worker, id: job.id }), 'A held lease is not granted again by name.')
    assertNone(await store.claim(worker), 'A held lease is not granted again as the next job.')
    await advance(leaseMs + 100)
    const second = await store.claim({ owner: 'second', leaseMs, id: job.id })
    assert.deepEqual(
      [first?.token, second?.token, second?.lease?.owner],
      [1, 2, 'second'],
      'When the lease has run out, the next claim gets the next token.',
    )
    assert.deepEqual(
      [second?.attempts, second?.lapses],
      [1, 1],
      'A claim after a lapsed lease counts a lapse, not an attempt.',
    )
    assert.equal(second?.startedAt, first?.startedAt, 'startedAt stays the time of the first claim.')
    await advance(leaseMs + 100)
    assert.equal((await store.claim(worker))?.token, 3, 'Each further claim has the next token.')
  },

  async 'only one of eight simultaneous claims of a job with a lapsed lease wins'({ store, advance }) {
    const { job } = await store.create(sampleJob())
    await store.claim({ ...worker, id: job.id })
    await advance(leaseMs + 100)
    const granted = await accepted(8, (n) => store.claim(n % 2 ? worker : { ...worker, id: job.id }))
    assert.deepEqual(
      granted.map(({ token }) => token),
      [2],
      'Exactly one of eight simultaneous claims of a lapsed job is granted, with the next token.',
    )
  },

  async 'a claim takes over only leases that ended by its `lapsedBefore`'({ store, advance }) {
    const { job } = await store.create(sampleJob())
    const until = (await store.claim(worker))?.lease?.until ?? 0
    await advance(leaseMs + 100)
    for (const named of [{}, { id: job.id }])
      assertNone(
        await store.claim({ ...worker, ...named, lapsedBefore: until - 1 }),
        'A lease that ended after `lapsedBefore` is not taken over, even by a claim that names the job.',
      )
    const { job: queued } = await store.create(sampleJob())
    assert.equal(
      (await store.claim({ ...worker, lapsedBefore: 0 }))?.id,
      queued.id,
      'A queued job is claimed whatever `lapsedBefore` is.',
    )
    assert.equal(
      (await store.claim({ ...worker, lapsedBefore: until }))?.token,
      2,
      'A lease that ended by `lapsedBefore` is taken over.',
    )
  },

  async 'a heartbeat keeps the lease beyond its original end'({ store, advance }) {
    const { job } = await store.create(sampleJob())
    // Twice as long as elsewhere: in real time, the store must be called again before the second lease runs out.
    const long = 2 * leaseMs
    await store.claim({ ...worker, id: job.id, leaseMs: long })
    await advance(long * 0.7)
    assert.ok(await store.apply(job.id, heartbeat(1, { leaseMs: long })), 'A heartbeat under a held lease is accepted.')
    await advance(long * 0.7)
    assertNone(await store.claim({ ...worker, id: job.id }), 'A renewed lease is not granted again before its new end.')
    assert.deepEqual(await store.due('lapsed', 10), [], 'A job with a renewed lease is not lapsed.')
  },

  async 'claims with the same token are told apart by their nonces'({ store }) {
    const { job } = await store.create(sampleJob())
    const granted = await store.claim({ ...worker, id: job.id, nonce: 'second' })
    assert.ok(granted, 'A claim of a queued job is granted.')
    for (const nonce of ['first', undefined]) {
      for (const change of [heartbeat(1), succeed(granted), fail(1), requeue(1)])
        assertNone(
          await store.apply(job.id, { ...change, nonce }),
          `${change.kind} with the nonce ${nonce} changes nothing of a claim with another nonce.`,
        )
    }
    assert.deepEqual(await store.get(job.id), granted, 'Changes with another nonce change nothing.')
    assert.ok(
      await store.apply(job.id, heartbeat(1, { nonce: 'second' })),
      'A heartbeat with the nonce of the claim is accepted.',
    )
    assert.equal(
      (await store.apply(job.id, succeed(granted, { nonce: 'second' })))?.status,
      'SUCCEEDED',
      'Success with the nonce of the claim is accepted.',
    )
  },

  async 'a superseded worker changes nothing'({ store, advance }) {
    const { job } = await store.create(sampleJob())
    const first = await store.claim({ ...worker, id: job.id })
    await advance(leaseMs + 100)
    const second = await store.claim({ ...worker, id: job.id })
    assert.ok(first && second, 'Both claims are granted.')
    for (const change of [
      heartbeat(first.token),
      succeed(first),
      fail(first.token),
      requeue(first.token),
      requeue(first.token, { onShutdown: true }),
    ]) {
      assertNone(await store.apply(job.id, change), `${change.kind} of a superseded worker changes nothing.`)
      assert.deepEqual(
        await store.get(job.id),
        second,
        `The record is as the second claim left it after ${change.kind} of the first.`,
      )
    }
    const done = await store.apply(job.id, succeed(second))
    assert.equal(done?.status, 'SUCCEEDED', 'The worker that holds the lease can end the job.')
    assertNone(await store.apply(job.id, fail(first.token)), 'A superseded worker cannot end a job that has ended.')
    assert.deepEqual(await store.get(job.id), done, 'The end that was accepted stays.')
  },

  async 'a worker with a token that was not granted yet changes nothing'({ store }) {
    const held = await claimed(store)
    for (const change of [heartbeat(2), succeed({ id: held.id, token: 2 }), fail(2), requeue(2)])
      assertNone(
        await store.apply(held.id, change),
        `${change.kind} with a token that was not granted yet changes nothing.`,
      )
    assert.deepEqual(await store.get(held.id), held, 'Changes with a token that was not granted yet change nothing.')
  },

  async 'a worker whose lease ran out can still end its job if no other worker took over'({ store, advance }) {
    const held = await claimed(store)
    await advance(leaseMs + 100)
    assert.equal(
      (await store.apply(held.id, succeed(held)))?.status,
      'SUCCEEDED',
      'A worker whose lease ran out can end its job if no other worker took over.',
    )
    assertNone(await store.claim(worker), 'A job that has ended is not claimed.')
  },
} satisfies Cases<JobStoreContext>
