import { expect, test } from 'vitest'
import { memoryJobs } from '../../../src/adapters/memory.js'
import { memoryQueue } from '../../../src/adapters/queues/memory/memory-queue.js'
import type { Workflow } from '../../../src/core/engine/workflow/workflow.js'
import { gate, testEngine, textWorkflow } from '../harness.js'

/** A worker receives orders with its heartbeats. */
const dispatch = { leaseMs: 300, progressIntervalMs: 50, sweepIntervalMs: 20, graceMs: 100 }

/** Two engines on one store, whose jobs run until `ended` is open or they are interrupted. */
function twoWorkers(settings = {}) {
  const jobs = memoryJobs()
  const ended = gate()
  const workflow: Workflow = {
    ...textWorkflow(),
    outputs: () => ({}),
    stages: [
      {
        name: 'work',
        run: ({ signal }) =>
          Promise.race([
            ended.opened,
            new Promise<never>((_, reject) => (signal.onabort = () => reject(signal.reason))),
          ]),
      },
    ],
  }
  const worker = (owner: string) =>
    testEngine(workflow, { dispatch: { ...dispatch, ...settings }, owner }, { jobs, queue: memoryQueue() })
  const [a, b] = [worker('a'), worker('b')]
  const ownerOf = async (id: string) => (await jobs.get(id))?.lease?.owner
  const stateOf = async (owner: string) => (await a.engine.workers()).find((each) => each.owner === owner)?.state
  return { a, b, ended, ownerOf, stateOf, close: () => Promise.all([a.engine.close(), b.engine.close()]) }
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 5))
}

test('a cordoned worker finishes what it runs and takes no more, until it is uncordoned', async () => {
  const { a, b, ended, ownerOf, stateOf, close } = twoWorkers()
  await a.engine.start()
  const first = await a.submit()
  await until(async () => (await ownerOf(first.id)) === 'a')
  await b.engine.setWorkerState('a', 'cordoned')
  expect(await stateOf('a')).toBe('cordoned')
  // The worker has written its document again, so it has read the order.
  const { seenAt } = (await a.engine.workers())[0]!
  await until(async () => (await a.engine.workers())[0]!.seenAt > seenAt)
  expect(await stateOf('a')).toBe('cordoned')
  ended.open()
  await a.until(first.id, 'SUCCEEDED')
  const second = await a.submit()
  await new Promise((resolve) => setTimeout(resolve, 100))
  expect(await a.engine.get(second.id)).toMatchObject({ status: 'QUEUED' })
  expect(await a.engine.waiting(second)).toMatchObject({ reason: 'no_worker' })
  await b.engine.setWorkerState('a', 'open')
  await a.until(second.id, 'SUCCEEDED')
  await close()
})

test('a drained worker hands over what still runs after its grace, and the attempt does not count', async () => {
  const { a, b, ended, ownerOf, close } = twoWorkers()
  await a.engine.start()
  const job = await a.submit()
  await until(async () => (await ownerOf(job.id)) === 'a')
  await b.engine.start()
  await b.engine.setWorkerState('a', 'draining')
  await until(async () => (await ownerOf(job.id)) === 'b')
  expect(await a.engine.get(job.id)).toMatchObject({ attempts: 1, lapses: 0, shutdownRequeues: 1 })
  ended.open()
  await b.until(job.id, 'SUCCEEDED')
  await close()
})

test('an uncordoned worker looks for jobs at once, not with its next sweep', async () => {
  const { a, b, ended, ownerOf, stateOf, close } = twoWorkers({ sweepIntervalMs: 3_600_000 })
  await a.engine.start()
  await b.engine.setWorkerState('a', 'cordoned')
  // The worker has written its document again, so it has read the order.
  const { seenAt } = (await a.engine.workers())[0]!
  await until(async () => (await a.engine.workers())[0]!.seenAt > seenAt)
  const job = await a.submit()
  expect([await ownerOf(job.id), await stateOf('a')]).toEqual([undefined, 'cordoned'])
  await b.engine.setWorkerState('a', 'open')
  ended.open()
  await a.until(job.id, 'SUCCEEDED')
  await close()
})

test('a worker that is not alive cannot be cordoned', async () => {
  const { a, close } = twoWorkers()
  await expect(a.engine.setWorkerState('nobody', 'cordoned')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  await close()
})
