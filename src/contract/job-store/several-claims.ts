import assert from 'node:assert/strict'
import type { JobStore } from '../../core/engine/ports/job-store.js'
import { leaseMs, type JobStoreContext } from '../job-store-context.js'
import { ids, sampleJob, together } from '../job-samples.js'
import type { Cases } from '../suite.js'

const long = leaseMs * 100

/** `undefined` for a store that claims one job at a time: it has nothing to prove. */
function several(store: JobStore, ms = long) {
  const claim = store.claimSeveral?.bind(store)
  return claim && ((max: number) => claim({ owner: 'worker', leaseMs: ms }, { max }))
}

export const severalClaimsCases = {
  async 'a call claims several jobs in the order of single claims, and fewer only if no more are waiting'({
    store,
    advance,
  }) {
    const claim = several(store)
    if (!claim) return
    for (const name of ['a1', 'a2', 'a3', 'b1', 'c1']) {
      await advance(5)
      await store.create(sampleJob({ app: name[0], name }))
    }
    const first = await claim(4)
    assert.deepEqual(
      first.map(({ name }) => name),
      ['a1', 'b1', 'c1', 'a2'],
      'Applications take turns within one call.',
    )
    for (const job of first) {
      assert.deepEqual([job.token, job.attempts], [1, 1], 'Each of several claims has token 1 and counts one attempt.')
      assert.deepEqual(await store.get(job.id), job, 'get shows each of several claims.')
    }
    for (const name of ['a4', 'b2']) await store.create(sampleJob({ app: name[0], name }))
    assert.deepEqual(
      (await claim(9)).map(({ name }) => name),
      ['b2', 'a3', 'a4'],
      'The next call continues with the least recently served application and returns what is left.',
    )
    assert.deepEqual(await claim(3), [], 'An empty store has nothing to claim.')
  },

  async 'one call claims jobs whose leases ran out before waiting ones'({ store, advance }) {
    const claim = several(store)
    if (!claim) return
    for (const name of ['lost', 'waiting', 'last']) {
      await advance(5)
      await store.create(sampleJob({ name }))
    }
    await several(store, leaseMs)?.(1)
    await advance(leaseMs + 100)
    assert.deepEqual(
      (await claim(3)).map(({ name }) => name),
      ['lost', 'waiting', 'last'],
      'A call for several jobs gets the lapsed one first, and waiting ones with it.',
    )
  },

  async 'simultaneous claims of several jobs get every job exactly once'({ store }) {
    const claim = several(store)
    if (!claim) return
    const apps = ['a', 'b', 'c']
    await together(60, (n) => store.create(sampleJob({ app: apps[n % 3] })))
    const claimed = ids((await together(20, () => claim(4))).flat())
    assert.equal(claimed.length, 60, 'Twenty simultaneous calls for four jobs get all of sixty.')
    assert.equal(new Set(claimed).size, 60, 'No job is granted to two simultaneous calls.')
  },

  async 'a call that claims several jobs keeps the limits of running jobs'({ store }) {
    const claim = several(store)
    if (!claim) return
    await store.changeRule({ kind: 'application', id: 'a' }, { maxRunning: 2 })
    for (let n = 0; n < 12; n++) await store.create(sampleJob({ app: n < 8 ? 'a' : 'b' }))
    const calls = await together(3, () => claim(5))
    const count = (name: string) => calls.flat().filter(({ app }) => app === name).length
    assert.equal(count('a'), 2, 'Simultaneous calls claim no more jobs of an application than it may run.')
    assert.equal(count('b'), 4, 'All jobs of an application without a limit are claimed.')
    await store.changeRule({ kind: 'application', id: 'a' }, { maxRunning: null })
  },
} satisfies Cases<JobStoreContext>
