import { describe, expect, onTestFinished, test } from 'vitest'
import { memoryBlobs, memoryJobs } from '../../../src/adapters/memory.js'
import { memoryQueue } from '../../../src/adapters/queues/memory/memory-queue.js'
import { inlineRunner } from '../../../src/core/engine/runner/inline-runner.js'
import type { RunContext } from '../../../src/core/engine/workflow/steps.js'
import { stepsWorkflow, testEngine } from '../harness.js'

type Run = (context: RunContext, worker: string) => Promise<void>

/** Workers with these labels over one store; each passes its name to the function. */
function workersOf(run: Run, labels: Record<string, string[]>, needs?: string[]) {
  const shared = { jobs: memoryJobs(), blobs: memoryBlobs() }
  return Object.entries(labels).map(([name, offers]) => {
    const workflow = stepsWorkflow((context) => run(context, name), { needs })
    const dispatch = { labels: offers, sweepIntervalMs: 50 }
    const runner = inlineRunner({ resolve: () => workflow })
    const worker = testEngine(workflow, { dispatch, owner: name }, { ...shared, queue: memoryQueue(), runner })
    onTestFinished(() => worker.engine.close())
    return worker
  })
}

describe('a step that needs a worker of its own', () => {
  test('ends the run on another worker, and continues on one that has it, with the finished steps', async () => {
    const ran: string[] = []
    const [cpu, gpu] = workersOf(
      async ({ step }, worker) => {
        const note = (name: string) => async () => `${ran.push(`${name} on ${worker}`)}`
        await step.run('decode', note('decode'))
        await step.run('separate', note('separate'), { needs: ['gpu'] })
        await step.run('encode', note('encode'))
      },
      { cpu: [], gpu: ['gpu'] },
    )
    await cpu!.engine.start()
    const { id } = await cpu!.submit()
    await expect.poll(() => cpu!.engine.get(id)).toMatchObject({ status: 'QUEUED', pool: 'gpu', attempts: 0 })
    const waiting = await cpu!.engine.get(id)
    expect(waiting && (await cpu!.engine.waiting(waiting))).toMatchObject({ reason: 'no_worker' })
    await gpu!.engine.start()
    expect(await gpu!.until(id, 'SUCCEEDED')).toMatchObject({ pool: 'gpu' })
    expect(ran).toEqual(['decode on cpu', 'separate on gpu', 'encode on gpu'])
  })

  test('leaves the worker while it waits for a time: then any worker will do again', async () => {
    const ran: string[] = []
    const [cpu, gpu] = workersOf(
      async ({ step }, worker) => {
        await step.run('separate', async () => ran.push(`separate on ${worker}`), { needs: ['gpu'] })
        await step.sleep('pause', 100)
        await step.run('encode', async () => ran.push(`encode on ${worker}`))
      },
      { cpu: [], gpu: ['gpu'] },
    )
    await gpu!.engine.start()
    const { id } = await cpu!.submit()
    await expect.poll(() => cpu!.engine.get(id)).toMatchObject({ status: 'QUEUED', pool: '', steps: { length: 2 } })
    await gpu!.engine.close()
    await cpu!.engine.start()
    await cpu!.until(id, 'SUCCEEDED')
    expect(ran).toEqual(['separate on gpu', 'encode on cpu'])
  })

  test('needs it besides what the workflow needs; of an amount, a share that was claimed for it', async () => {
    const ran: string[] = []
    const [worker] = workersOf(
      async ({ step }) => {
        await step.run('big', async () => ran.push('big'), { needs: ['gpuMemory=6'] })
      },
      { worker: ['eu', 'gpuMemory=8'] },
      ['eu'],
    )
    await worker!.engine.start()
    const { id } = await worker!.submit()
    const { pool, history } = await worker!.until(id, 'SUCCEEDED')
    expect(pool).toBe('eu gpuMemory=6')
    expect(history.map(({ outcome }) => outcome)).toEqual(['suspended', 'succeeded'])
    expect(ran).toEqual(['big'])
  })

  test('lets those beside it finish first', async () => {
    const ran: string[] = []
    const [cpu, gpu] = workersOf(
      async ({ step }, worker) => {
        await Promise.all([
          step.run('fast', async () => ran.push(`fast on ${worker}`), { needs: ['gpu'] }),
          step.run(
            'slow',
            () => new Promise((resolve) => setTimeout(() => resolve(ran.push(`slow on ${worker}`)), 50)),
          ),
        ])
      },
      { cpu: [], gpu: ['gpu'] },
    )
    await cpu!.engine.start()
    const { id } = await cpu!.submit()
    await expect.poll(() => cpu!.engine.get(id)).toMatchObject({ status: 'QUEUED', pool: 'gpu' })
    await gpu!.engine.start()
    await gpu!.until(id, 'SUCCEEDED')
    expect(ran).toEqual(['slow on cpu', 'fast on gpu'])
  })

  test('runs where the host runs the job itself', async () => {
    const [worker] = workersOf(({ step }) => step.run('any', async () => {}, { needs: ['gpu'] }), { worker: [] })
    const { id } = await worker!.submit()
    expect(await worker!.engine.run(id)).toMatchObject({ status: 'SUCCEEDED' })
  })

  test('with an invalid label is an error with a message', async () => {
    const [worker] = workersOf(({ step }) => step.run('any', async () => {}, { needs: ['a gpu'] }), { worker: [] })
    const { id } = await worker!.submit()
    const job = await worker!.engine.run(id)
    expect(job).toMatchObject({ status: 'FAILED', failure: expect.stringContaining('needs "a gpu"') })
  })
})
