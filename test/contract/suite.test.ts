import { describe, expect, test } from 'vitest'
import {
  blobStoreContract,
  type ContractApi,
  faultOnce,
  jobStoreContract,
  withFaults,
} from '../../src/contract/index.js'
import { sourceOf } from '../../src/contract/blob-samples.js'
import { fail, sampleJob, succeed } from '../../src/contract/job-samples.js'
import { memoryBlobs, memoryJobs } from '../../src/adapters/memory.js'
import type { JobStore } from '../../src/core/engine/ports/job-store.js'
import { settableClock } from './settable-clock.js'

describe('a contract suite', () => {
  test('fails for stores that break a rule, whichever it is', async () => {
    const broken: Record<string, (store: JobStore) => Partial<JobStore>> = {
      'overwrites a known id': (store) => ({
        create: async (job) => (
          await store.apply(job.id, { kind: 'delete' }),
          await store.purge({ id: job.id }),
          store.create(job)
        ),
      }),
      'shows deleted jobs as absent too late': (store) => ({
        count: async (query) => (await store.count(query)) + (await store.due('deleted', 100)).length,
      }),
      'accepts any token': (store) => ({
        apply: async (id, change) =>
          store.apply(id, 'token' in change ? { ...change, token: (await store.get(id))?.token ?? 0 } : change),
      }),
      'grants a held lease': (store) => ({
        claim: async ({ id, ...request }) =>
          (await store.claim({ id, ...request })) ?? (id === undefined ? undefined : store.get(id)),
      }),
      'loses what runs at the same time': (store) => ({
        apply: async (id, change) => (
          await new Promise((resolve) => setImmediate(resolve)),
          change.kind === 'endDelivery' && change.status === 205 ? undefined : store.apply(id, change)
        ),
      }),
      'lists oldest first': (store) => ({ list: async (page) => (await store.list(page)).reverse() }),
      'ignores the cursor': (store) => ({ list: ({ after: _after, ...page }) => store.list(page) }),
      'ignores a filter': (store) => ({ list: ({ batchName: _batchName, ...page }) => store.list(page) }),
      'ignores limits of due': (store) => ({ due: (kind) => store.due(kind, 1000) }),
      'purges what is not deleted': (store) => ({
        purge: async (target) =>
          'id' in target
            ? (await store.apply(target.id, { kind: 'delete' }), store.purge(target))
            : store.purge(target),
      }),
    }
    for (const [name, change] of Object.entries(broken)) {
      const { failed, passed } = await outcome((api) =>
        jobStoreContract(api, {
          async open({ idempotencyMs }) {
            const { clock, advance } = settableClock()
            const store = memoryJobs({ clock, idempotencyMs })
            return { store: { ...store, ...change(store) }, advance, async close() {} }
          },
          // Or else they would fail for every store, and prove nothing.
          skips: {
            'records that cannot be read keep no other job from being claimed': 'not to be damaged',
            'a page shows the rest beside a record that cannot be read, and the store names that one':
              'not to be damaged',
            'more damaged records than a batch holds keep no sound one from the sweep': 'not to be damaged',
          },
        }),
      )
      expect(failed.length, `a store that ${name} passed all cases`).toBeGreaterThan(0)
      expect(passed.length).toBeGreaterThan(0)
    }
  })

  test('reports a skipped case with its reason and runs the others', async () => {
    const { skipped, passed } = await outcome((api) =>
      blobStoreContract(api, {
        open: async () => ({ store: memoryBlobs(), async close() {} }),
        skips: { '50 MB are written and read without holding them': 'memory holds it' },
      }),
    )
    expect(skipped).toEqual(['50 MB are written and read without holding them (skipped: memory holds it)'])
    expect(passed.length).toBeGreaterThan(25)
  })

  test('refuses a skip without a reason or without a case', () => {
    const register = (skips: Record<string, string>) => () =>
      blobStoreContract(
        { describe: (_name, body) => body(), test: Object.assign(() => {}, { skip() {} }) },
        { open: () => expect.unreachable(), skips },
      )
    expect(register({ 'no such case': 'reason' })).toThrow(/names no case/)
    expect(register({ 'an empty blob is a blob': ' ' })).toThrow(/no reason/)
  })

  test('names the case whose call never settles, and where it waits', async () => {
    const never = new Promise<never>(() => {})
    const hanging = (where: 'open' | 'stat' | 'close') =>
      outcome((api) =>
        blobStoreContract(onlyFirst(api), {
          timeoutMs: 20,
          async open() {
            if (where === 'open') await never
            const store = memoryBlobs()
            return {
              store: where === 'stat' ? { ...store, put: () => never } : store,
              close: async () => (where === 'close' ? never : undefined),
            }
          },
        }),
      )
    for (const [where, step] of [
      ['open', 'open() of the harness'],
      ['stat', 'the case'],
      ['close', 'close() of the harness'],
    ] as const) {
      const { failed, messages } = await hanging(where)
      expect(failed).toHaveLength(1)
      expect(messages[0]).toContain(`"writing: ${failed[0]}" did not end within 20 ms: ${step} is still waiting`)
    }
  })

  test('says what is wrong with a harness that leaves the idempotency window out', async () => {
    const { clock, advance } = settableClock()
    const { failed, messages } = await outcome((api) =>
      jobStoreContract(api, { open: async () => ({ store: memoryJobs({ clock }), advance, async close() {} }) }),
    )
    // Records of this store cannot be damaged, which the harness does not say either.
    const others = messages.filter((message) => !message.startsWith('Give `damage`'))
    expect(others.length).toBeGreaterThan(0)
    expect(failed).toHaveLength(messages.length)
    for (const message of others) expect(message).toContain('open({ idempotencyMs })')
  })

  test('closes what it opened, also when a case fails', async () => {
    let open = 0
    await outcome((api) =>
      blobStoreContract(api, {
        async open() {
          open++
          return { store: { ...memoryBlobs(), stat: async () => undefined }, close: async () => void open-- }
        },
        skips: { '50 MB are written and read without holding them': 'memory holds it' },
      }),
    )
    expect(open).toBe(0)
  })
})

describe('withFaults', () => {
  test('fails before the effect, once', async () => {
    const jobs = withFaults(memoryJobs(), faultOnce('create', 'before'))
    await expect(jobs.create(sampleJob())).rejects.toThrow('Injected fault before create')
    expect(await jobs.count({})).toBe(0)
    expect((await jobs.create(sampleJob())).created).toBe(true)
  })

  test('fails after the effect: it has happened and the caller does not know', async () => {
    const error = new Error('connection lost')
    const jobs = withFaults(memoryJobs(), faultOnce('apply', 'after', { occurrence: 2, error }))
    const { job } = await jobs.create(sampleJob())
    const running = await jobs.claim({ id: job.id, owner: 'w', leaseMs: 1000 })
    if (!running) return expect.unreachable()
    await jobs.apply(job.id, { kind: 'cancel', error: fail(1).error, retentionMs: 1, messages: [] })
    await expect(jobs.apply(job.id, succeed(running))).rejects.toBe(error)
    expect((await jobs.get(job.id))?.status).toBe('SUCCEEDED')
  })

  test('reaches listings and leaves other properties alone', async () => {
    const blobs = withFaults(memoryBlobs(), faultOnce('list', 'after'))
    expect(blobs.traits).toEqual({ scope: 'process' })
    await blobs.put('a/b', sourceOf('x'))
    const seen: string[] = []
    const read = async () => {
      for await (const { key } of blobs.list('a/')) seen.push(key)
    }
    await expect(read()).rejects.toThrow('Injected fault after list')
    expect(seen).toEqual(['a/b'])
  })

  test('can hold a call up until the plan lets it go', async () => {
    let release = () => {}
    const gate = new Promise<undefined>((resolve) => (release = () => resolve(undefined)))
    const jobs = withFaults(memoryJobs(), ({ method, moment }) =>
      method === 'create' && moment === 'before' ? gate : undefined,
    )
    const creating = jobs.create(sampleJob())
    expect(await jobs.count({})).toBe(0)
    release()
    await creating
    expect(await jobs.count({})).toBe(1)
  })
})

/** Runs a suite on a runner of a few lines. */
async function outcome(
  register: (api: ContractApi) => void,
): Promise<{ passed: string[]; failed: string[]; skipped: string[]; messages: string[] }> {
  const cases: [string, () => Promise<void>][] = []
  const skipped: string[] = []
  const add = (name: string, body: () => Promise<void>) => void cases.push([name, body])
  register({
    describe: (_name, body) => body(),
    test: Object.assign(add, { skip: (name: string) => void skipped.push(name) }),
  })
  const passed: string[] = []
  const failed: string[] = []
  const messages: string[] = []
  for (const [name, body] of cases) {
    await body().then(
      () => passed.push(name),
      (error: unknown) => {
        failed.push(name)
        messages.push((error as Error).message)
      },
    )
  }
  return { passed, failed, skipped, messages }
}

/** Registers the first case of a suite and no other. */
function onlyFirst(api: ContractApi): ContractApi {
  let count = 0
  const first = (name: string, body: () => Promise<void>) => (count++ === 0 ? api.test(name, body) : undefined)
  return { describe: (name, body) => api.describe(name, body), test: Object.assign(first, { skip() {} }) }
}
