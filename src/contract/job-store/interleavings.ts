import assert from 'node:assert/strict'
import type { JobRecord } from '../../core/engine/job/job.js'
import type { JobStore } from '../../core/engine/ports/job-store.js'
import { assertNone } from '../broken-promise.js'
import { leaseMs, type JobStoreContext } from '../job-store-context.js'
import { cancel, fail, heartbeat, ids, requeue, sampleJob, succeed, together } from '../job-samples.js'
import { randomSource, type RandomSource } from '../random-source.js'
import type { Cases } from '../suite.js'

const workers = 12
const operationsEach = 50

export const interleavingCases = {
  async 'hundreds of simultaneous operations lose no job and settle none twice'({ store, advance }) {
    const seed = Math.floor(Math.random() * 2 ** 32)
    try {
      const ledger = new Ledger()
      const random = randomSource(seed)
      await together(workers, (n) => work(store, ledger, randomSource(random() * 2 ** 32), `worker-${n}`, advance))
      await ledger.check(store)
      // Holders of leases have died: others finish the rest.
      await advance(leaseMs + 100)
      for (let left = ledger.created.length; ; left--) {
        const job = await store.claim({ owner: 'last', leaseMs })
        if (!job) break
        assert.ok(left > 0, 'No more claims are granted than there are jobs.')
        ledger.claimed(job)
        ledger.settled(await store.apply(job.id, succeed(job)))
      }
      await ledger.check(store)
      assert.equal(await store.count({ statuses: ['QUEUED', 'STARTED'] }), 0, 'In the end no job is queued or started.')
    } catch (error) {
      throw new Error(`${error instanceof Error ? error.message : String(error)} (seed ${seed})`, { cause: error })
    }
  },
} satisfies Cases<JobStoreContext>

/** The answers that callers got. In the end, the store must agree with them. */
class Ledger {
  readonly created: string[] = []
  readonly deleted = new Set<string>()
  readonly settlements = new Map<string, number>()
  readonly tokens = new Map<string, Set<number>>()

  claimed(job: JobRecord | undefined): void {
    if (!job) return
    const tokens = this.tokens.get(job.id) ?? new Set()
    assert.ok(!tokens.has(job.token), `The token ${job.token} of ${job.id} is granted once.`)
    this.tokens.set(job.id, tokens.add(job.token))
  }

  settled(job: JobRecord | undefined): void {
    if (job && (job.status === 'SUCCEEDED' || job.status === 'FAILED'))
      this.settlements.set(job.id, (this.settlements.get(job.id) ?? 0) + 1)
  }

  async check(store: JobStore): Promise<void> {
    const listed = await store.list({ limit: 10_000 })
    const expected = this.created.filter((id) => !this.deleted.has(id))
    assert.deepEqual(
      ids(listed).sort(),
      expected.sort(),
      'list shows exactly the jobs that were created and not deleted.',
    )
    assert.equal(
      await store.count({}),
      expected.length,
      'count counts exactly the jobs that were created and not deleted.',
    )
    for (const job of listed) {
      const ended = job.status === 'SUCCEEDED' || job.status === 'FAILED'
      assert.equal(
        this.settlements.get(job.id) ?? 0,
        ended ? 1 : 0,
        `An end is accepted once, and is kept: ${job.id} is ${job.status}.`,
      )
      assert.equal(
        job.completedAt !== null,
        ended,
        `A job has completedAt if and only if it has ended: ${job.id} is ${job.status}.`,
      )
      assert.equal(job.token, this.tokens.get(job.id)?.size ?? 0, 'Every token was granted to one caller.')
      assert.deepEqual(await store.get(job.id), job, `get and list show the same record of ${job.id}.`)
    }
    for (const status of ['QUEUED', 'STARTED', 'SUCCEEDED', 'FAILED'] as const) {
      assert.equal(
        await store.count({ statuses: [status] }),
        listed.filter((job) => job.status === status).length,
        `count and list agree on the jobs that are ${status}.`,
      )
    }
    for (const id of this.deleted) assertNone(await store.get(id), `get does not show the deleted job ${id}.`)
    const marked = await store.due('deleted', 10_000)
    for (const job of marked)
      assert.ok(this.deleted.has(job.id), `Only deleted jobs wait for their removal, and ${job.id} was not deleted.`)
  }
}

async function work(
  store: JobStore,
  ledger: Ledger,
  random: RandomSource,
  owner: string,
  advance: (milliseconds: number) => Promise<void>,
): Promise<void> {
  let held: JobRecord | undefined
  const anyId = () => ledger.created[Math.floor(random() * ledger.created.length)] ?? 'none'
  const operations: (() => Promise<void>)[] = [
    async () => {
      const { job } = await store.create(sampleJob())
      ledger.created.push(job.id)
    },
    async () => ledger.claimed((held = await store.claim({ id: anyId(), owner, leaseMs }))),
    async () => ledger.claimed((held = await store.claim({ owner, leaseMs }))),
    async () => void (held && (await store.apply(held.id, heartbeat(held.token, { leaseMs, progress: random() })))),
    async () => ledger.settled(held && (await store.apply(held.id, succeed(held)))),
    async () => ledger.settled(held && (await store.apply(held.id, fail(held.token)))),
    async () => void (held && (await store.apply(held.id, requeue(held.token, { onShutdown: random() < 0.5 })))),
    async () => ledger.settled(await store.apply(anyId(), cancel())),
    async () => {
      const id = anyId()
      if (random() < 0.5 && (await store.apply(id, { kind: 'delete' }))) ledger.deleted.add(id)
    },
    async () => {
      const [marked] = await store.due('deleted', 1)
      if (marked && random() < 0.5) await store.purge({ id: marked.id })
    },
    async () => {
      const page = await store.list({ limit: 20, statuses: ['QUEUED', 'STARTED'] })
      assert.equal(new Set(page.map((job) => job.id)).size, page.length, 'A page shows no job twice.')
      for (const job of page)
        assert.ok(
          job.status === 'QUEUED' || job.status === 'STARTED',
          'A page of QUEUED and STARTED jobs shows no others, even while jobs change.',
        )
    },
    () => advance(random() < 0.1 ? leaseMs / 10 : 1),
  ]
  for (let n = 0; n < operationsEach; n++) await operations[Math.floor(random() * operations.length)]?.()
}
