import ts from 'typescript'
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
import { queueFull } from '../../src/core/engine/job/queue-limit.js'
import type { BlobEntry, BlobSource, BlobStore } from '../../src/core/engine/ports/blob-store.js'
import type { JobStore } from '../../src/core/engine/ports/job-store.js'
import { readSources } from '../architecture/source-tree.js'
import { settableClock } from './stores/settable-clock.js'

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
          // Otherwise they would fail for every store, and prove nothing.
          skips: {
            'records that cannot be read do not prevent other jobs from being claimed': 'not to be damaged',
            'a page leaves out a record that cannot be read and shows the others, and `unreadable` names it':
              'not to be damaged',
            'more damaged records than a batch holds hide no readable one from the sweep': 'not to be damaged',
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
        skips: { '50 MB are written and read without being held in memory': 'memory holds it' },
      }),
    )
    expect(skipped).toEqual(['50 MB are written and read without being held in memory (skipped: memory holds it)'])
    expect(passed.length).toBeGreaterThan(25)
  })

  test('refuses a skip without a reason or without a case', () => {
    const register = (skips: Record<string, string>) => () =>
      blobStoreContract(
        { describe: (_name, body) => body(), test: Object.assign(() => {}, { skip() {} }) },
        { open: () => expect.unreachable(), skips },
      )
    expect(register({ 'no such case': 'reason' })).toThrow(/names no case/)
    expect(register({ 'a blob may be empty': ' ' })).toThrow(/no reason/)
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
    // Records of this store cannot be damaged; the harness does not declare that either.
    const others = messages.filter((message) => !message.startsWith('Give `damage`'))
    expect(others.length).toBeGreaterThan(0)
    expect(failed).toHaveLength(messages.length)
    for (const message of others) expect(message).toContain('open({ idempotencyMs })')
  })

  test('closes what it opened, even if a case fails', async () => {
    let open = 0
    await outcome((api) =>
      blobStoreContract(api, {
        async open() {
          open++
          return { store: { ...memoryBlobs(), stat: async () => undefined }, close: async () => void open-- }
        },
        skips: { '50 MB are written and read without being held in memory': 'memory holds it' },
      }),
    )
    expect(open).toBe(0)
  })
})

describe('a failing case says in words what was expected:', () => {
  const jobs: [what: string, change: (store: JobStore) => Partial<JobStore>, name: string, message: string][] = [
    [
      'a store that ignores a filter',
      (store) => ({ list: ({ batchName: _batchName, ...page }) => store.list(page) }),
      'every filter and every combination of filters selects exactly the jobs that match',
      'A list with the filters {"batchName":"batch"} shows exactly the jobs that match all of them, newest first. ' +
        'Expected [',
    ],
    [
      'a store that lists oldest first',
      (store) => ({ list: async (page) => (await store.list(page)).reverse() }),
      'a list shows every job once, newest first, and those of one millisecond by descending id',
      'A list shows every job once, by createdAt and then by id, both descending. Expected [',
    ],
    [
      'a store that forgets fencing',
      (store) => ({
        apply: async (id, change) =>
          store.apply(id, 'token' in change ? { ...change, token: (await store.get(id))?.token ?? 0 } : change),
      }),
      'a superseded worker changes nothing',
      "heartbeat of a superseded worker changes nothing. Expected undefined, got { id: '",
    ],
    [
      'a store that grants a job twice',
      (store) => ({ claim: async (request) => (await store.claim(request)) ?? store.get(request.id ?? '') }),
      'only one of eight simultaneous claims of one job wins',
      'Exactly one of eight simultaneous claims of one job is granted. Expected 1, got 8.',
    ],
    [
      'a store that counts a repeated key against the limit',
      (store) => ({
        create: async (job, options) =>
          (await store.count({})) > 0 ? Promise.reject(queueFull(1)) : store.create(job, options),
      }),
      'a create with an existing id is refused and overwrites nothing',
      'A create with an existing id fails with ALREADY_EXISTS. ' +
        'It failed with QUEUE_FULL: No more jobs of this application may wait',
    ],
  ]
  test.each(jobs)('%s', async (_, change, name, message) => {
    const { broken } = await outcome((api) =>
      jobStoreContract(api, {
        async open({ idempotencyMs }) {
          const { clock, advance } = settableClock()
          const store = memoryJobs({ clock, idempotencyMs })
          return { store: { ...store, ...change(store) }, advance, async close() {} }
        },
      }),
    )
    expect(broken.get(name)).toContain(message)
    expect(broken.get(name)).toContain(` Case: "${name}".`)
  })

  const blobs: [what: string, change: (store: BlobStore) => Partial<BlobStore>, name: string, message: string][] = [
    [
      'a store that takes a key of 201 characters',
      (store) => ({ put: (key, ...rest) => store.put(key.length === 201 ? 'other' : key, ...rest) }),
      'malformed keys and prefixes are refused by every method',
      `put refuses "${'x'.repeat(201)}", which is not a blob key. The call succeeded.`,
    ],
    [
      'a store that forgets ranges',
      (store) => ({ get: (key) => store.get(key) }),
      'a range is inclusive at both ends and clipped to the blob',
      "The range from 0 to 0 is inclusive at both ends and ends with the blob. Expected '0', got '0123456789'.",
    ],
    [
      'a store that holds a chunk while it requests the next',
      (store) => ({
        put: (key, source, options) => store.put(key, typeof source === 'string' ? source : late(source), options),
      }),
      'the memory of a chunk may be used again once the store requests the next',
      'put is done with a chunk, or has a copy, when it requests the next.',
    ],
    [
      'a store that lists by the time of the put',
      (store) => ({
        async *list(prefix) {
          const found: BlobEntry[] = []
          for await (const entry of store.list(prefix)) found.push(entry)
          yield* found.reverse()
        },
      }),
      'a list shows every blob under its prefix once, in key order, with its stat',
      "list shows every key under the prefix once, in the order of code units. Expected [ 'a/10'",
    ],
  ]
  test.each(blobs)('%s', async (_, change, name, message) => {
    const { broken } = await outcome((api) =>
      blobStoreContract(api, {
        async open() {
          const store = memoryBlobs()
          return { store: { ...store, ...change(store) }, async close() {} }
        },
        skips: { '50 MB are written and read without being held in memory': 'memory holds it' },
      }),
    )
    expect(broken.get(name)).toContain(message)
    expect(broken.get(name)).toContain(` Case: "${name}".`)
  })

  test('every assertion of the suites has a sentence', () => {
    const withoutSentence: string[] = []
    let assertions = 0
    for (const [path, text] of readSources()) {
      if (!path.startsWith('contract/')) continue
      const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
      const visit = (node: ts.Node): void => {
        const place = ts.isCallExpression(node) ? sentenceAt[node.expression.getText(file)] : undefined
        if (place !== undefined && ts.isCallExpression(node)) {
          assertions++
          const sentence = node.arguments[place]?.getText(file) ?? ''
          if (!/^['"`](?:[A-Z$]|[a-z]+[A-Z]?[A-Za-z]* )[^]*[.?]['"`]$/.test(sentence))
            withoutSentence.push(
              `${path}:${file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1} ${sentence}`,
            )
        }
        ts.forEachChild(node, visit)
      }
      visit(file)
    }
    expect(withoutSentence).toEqual([])
    expect(assertions).toBeGreaterThan(500)
  })
})

/** Index of the argument that is the message of an assertion. */
const sentenceAt: Record<string, number> = {
  'assert.ok': 1,
  'assert.equal': 2,
  'assert.notEqual': 2,
  'assert.deepEqual': 2,
  'assert.match': 2,
  'assert.fail': 0,
  'assert.rejects': 2,
  assertFails: 2,
  assertNone: 1,
}

async function* late(source: Exclude<BlobSource, string>) {
  let held: Uint8Array | undefined
  for await (const chunk of source instanceof Uint8Array ? [source] : source) {
    if (held) yield held
    held = chunk
  }
  if (held) yield held
}

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

/** Runs a suite on a minimal runner. */
async function outcome(
  register: (api: ContractApi) => void,
): Promise<{ passed: string[]; failed: string[]; skipped: string[]; messages: string[]; broken: Map<string, string> }> {
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
  return { passed, failed, skipped, messages, broken: new Map(failed.map((name, index) => [name, messages[index]!])) }
}

/** Registers only the first case of a suite. */
function onlyFirst(api: ContractApi): ContractApi {
  let count = 0
  const first = (name: string, body: () => Promise<void>) => (count++ === 0 ? api.test(name, body) : undefined)
  return { describe: (name, body) => api.describe(name, body), test: Object.assign(first, { skip() {} }) }
}
