import { describe, expect, test } from 'vitest'
import { memoryJobs } from '../../../src/adapters/memory.js'
import type { JobStore } from '../../../src/core/engine/ports/job-store.js'
import type { WorkerState } from '../../../src/core/engine/workers/worker.js'
import { gate, type TestEngine, testEngine, textWorkflow } from '../harness.js'
import { never, notified, soon } from '../notified.js'

describe('the job of a lost worker', () => {
  const dispatch = { leaseMs: 300, progressIntervalMs: 10, ...never }

  /** A store shared by several processes, one of which began the job and died. */
  async function lost() {
    const jobs: JobStore = { ...memoryJobs(), traits: { scope: 'shared' } }
    const worker = testEngine(textWorkflow(), { dispatch }, { jobs })
    const { id } = await worker.submit()
    const claim = { owner: 'dead', nonce: 'n', leaseMs: 1, labels: [], workflows: ['test/text'] }
    expect(await jobs.claim({ ...claim, lapsedBefore: undefined })).toMatchObject({ id })
    await soon()
    return { ...worker, jobs, id }
  }

  /** The same store for a started worker; records what the worker requests from it. */
  async function watched(leaseMs: number, lapsed: 'one' | 'none' | 'unknown') {
    const { jobs: memory, id } = await lost()
    const asked: string[] = []
    const jobs: JobStore = {
      ...memory,
      claim: (request) => (asked.push('claim'), memory.claim(request)),
      claimSeveral: undefined,
      async due(reason, limit) {
        asked.push(reason)
        if (reason !== 'lapsed' || lapsed === 'one') return memory.due(reason, limit)
        if (lapsed === 'unknown') throw new Error('no store')
        return []
      },
    }
    const worker = notified(textWorkflow(), {}, { dispatch: { leaseMs } }, 1, { jobs })
    await worker.engine.start()
    await expect.poll(() => asked).toContain('lapsed')
    await soon()
    asked.length = 0
    return { ...worker, jobs, id, asked }
  }

  test('is looked for again by a worker that cannot judge it yet, even without a notification', async () => {
    const { engine, until, id } = await lost()
    await engine.start()
    expect(await until(id, 'SUCCEEDED')).toMatchObject({ token: 2, lapses: 1 })
    await engine.close()
  })

  test('is waited for by run() without an id', async () => {
    const { engine, id } = await lost()
    expect(await engine.run()).toMatchObject({ id, status: 'SUCCEEDED', token: 2 })
    await engine.close()
  })

  test('is waited for until the signal of the run fires', async () => {
    const { engine, id } = await lost()
    const run = engine.run(undefined, { signal: AbortSignal.timeout(20) })
    await run.then(
      (job) => expect(job).toBeUndefined(),
      (error: unknown) => expect(error).toMatchObject({ name: 'TimeoutError' }),
    )
    expect(await engine.get(id)).toMatchObject({ status: 'STARTED', token: 1 })
    await engine.close()
  })

  test('is left alone by a worker without the labels that it needs', async () => {
    const { engine, jobs } = await lost()
    const other = testEngine(
      textWorkflow(() => {}, 'test/other'),
      { dispatch },
      { jobs },
    )
    expect(await other.engine.run()).toBeUndefined()
    await Promise.all([engine.close(), other.engine.close()])
  })

  test('does not keep run() from getting another job', async () => {
    const { engine, submit, id } = await lost()
    const other = await submit()
    expect(await engine.run()).toMatchObject({ id: other.id, status: 'SUCCEEDED' })
    expect(await engine.get(id)).toMatchObject({ status: 'STARTED', token: 1 })
    await engine.close()
  })

  test('is asked about only once in a third of a lease, however often the worker is notified', async () => {
    const { engine, id, asked, hear } = await watched(3000, 'one')
    for (let times = 0; times < 5; times++) await hear().then(soon)
    expect(asked.filter((what) => what === 'claim').length).toBeGreaterThan(3)
    expect(asked).not.toContain('lapsed')
    expect(await engine.get(id)).toMatchObject({ token: 1 })
    await engine.close()
  })

  test.each(['none', 'unknown'] as const)('is looked for once if there is %s', async (lapsed) => {
    const { engine, asked } = await watched(300, lapsed)
    await new Promise((resolve) => setTimeout(resolve, 150))
    expect(asked).toEqual([])
    await engine.close()
  })
})

describe('a worker', () => {
  test('that runs the next job takes no other one', async () => {
    const { engine, submit } = testEngine(textWorkflow())
    const [first, second] = [await submit(), await submit()]
    expect(await engine.run()).toMatchObject({ id: first.id, status: 'SUCCEEDED' })
    expect(await engine.get(second.id)).toMatchObject({ status: 'QUEUED', token: 0 })
    await engine.close()
  })

  test('that was not notified passes nothing on, even if it is full', async () => {
    const finish = gate()
    const { engine, submit, until, notify } = notified(textWorkflow(() => finish.opened))
    const job = await submit()
    notify.mockClear()
    await engine.start()
    await until(job.id, 'STARTED')
    await soon()
    expect(notify).not.toHaveBeenCalled()
    finish.open()
    await engine.close()
  })

  test.each(['begins the next job', 'has room for what it is notified of'])(
    'that writes the end of a job %s meanwhile',
    async (what) => {
      const [began, finish, asked, written] = [gate(), gate(), gate(), gate()]
      const memory = memoryJobs()
      let first = ''
      const apply: JobStore['apply'] = async (id, change) => {
        if (change.kind === 'succeed' && id === first) await (asked.open(), written.opened)
        return memory.apply(id, change)
      }
      const workflow = textWorkflow(() => (began.open(), finish.opened))
      const { engine, submit, until, hear } = notified(workflow, {}, {}, 1, { jobs: { ...memory, apply } })
      first = (await submit()).id
      const next = what === 'begins the next job' ? await submit() : undefined
      await engine.start()
      await began.opened
      const heard = next ? undefined : hear()
      finish.open()
      await asked.opened
      if (next) await until(next.id, 'SUCCEEDED')
      await heard
      expect(await engine.get(first)).toMatchObject({ status: 'STARTED' })
      written.open()
      await engine.close()
    },
  )
})

describe('a worker that takes jobs again', () => {
  const owner = 'worker'
  const dispatch = { leaseMs: 300, graceMs: 300 }

  /** Gives the order, and waits until the worker has received it. */
  async function order({ engine }: Pick<TestEngine, 'engine'>, state: WorkerState) {
    const before = (await engine.workers())[0]!.seenAt
    await engine.setWorkerState(owner, state)
    await expect.poll(async () => (await engine.workers())[0]!.seenAt, { interval: 2 }).toBeGreaterThan(before)
    await soon()
  }

  test('looks for those that arrived meanwhile, and has room for new ones', async () => {
    const finish = gate()
    const workflow = textWorkflow(() => finish.opened)
    const worker = notified(workflow, {}, { owner, dispatch }, 2)
    await worker.engine.start()
    await order(worker, 'cordoned')
    const { id } = await worker.submit()
    const heard = worker.hear()
    expect(await worker.engine.get(id)).toMatchObject({ status: 'QUEUED' })
    await order(worker, 'open')
    await heard
    await worker.until(id, 'STARTED')
    finish.open()
    await worker.engine.close()
  })

  test('keeps those that it still runs, even if it was about to hand them over', async () => {
    const finish = gate()
    const worker = notified(
      textWorkflow(() => finish.opened),
      {},
      { owner, dispatch },
    )
    await worker.engine.start()
    const { id } = await worker.submit()
    await worker.hear()
    await worker.until(id, 'STARTED')
    await order(worker, 'draining')
    await order(worker, 'open')
    await new Promise((resolve) => setTimeout(resolve, dispatch.graceMs))
    finish.open()
    expect(await worker.until(id, 'SUCCEEDED')).toMatchObject({ token: 1, shutdownRequeues: 0 })
    await worker.engine.close()
  })
})
