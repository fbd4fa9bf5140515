import { afterEach, describe, expect, test } from 'vitest'
import { createTestEngine } from '../../src/testing/index.js'
import { waitForJob } from '../../src/testing/wait-for-job.js'
import { StemworkError } from '../../src/core/engine/errors.js'
import { gate, textWorkflow } from '../engine/harness.js'

let close = async () => {}
afterEach(() => close())

function open(...options: Parameters<typeof textWorkflow>) {
  const engine = createTestEngine({ workflows: [textWorkflow(...options)] })
  close = () => engine.close({ timeoutMs: 0 })
  const submit = async () => (await engine.submit({ app: 'test', workflow: 'test/text', params: {} })).job.id
  return { engine, submit }
}

/** The engine's interface for `waitForJob`, with the number of its listeners. */
function counted(engine: ReturnType<typeof createTestEngine>) {
  const counts = { listeners: 0, looks: 0 }
  const seen: Parameters<typeof waitForJob>[0] = {
    get: (id) => {
      counts.looks++
      return engine.get(id)
    },
    on: (name, listener) => {
      counts.listeners++
      engine.on(name, listener)
      return seen as typeof engine
    },
    off: (name, listener) => {
      counts.listeners--
      engine.off(name, listener)
      return seen as typeof engine
    },
  }
  return { seen, counts }
}

describe('waitForJob', () => {
  test('resolves with the job when it ends, after a single look', async () => {
    const started = gate()
    const finish = gate()
    const { engine, submit } = open(() => {
      started.open()
      return finish.opened
    })
    await engine.start()
    const id = await submit()
    await started.opened
    const { seen, counts } = counted(engine)
    const waiting = waitForJob(seen, id)
    finish.open()
    expect(await waiting).toMatchObject({ id, status: 'SUCCEEDED', progress: 1 })
    expect(counts).toEqual({ listeners: 0, looks: 1 })
  })

  test('resolves with a job that failed, after retries without a delay', async () => {
    const { engine, submit } = open(() => {
      throw new StemworkError('INTERNAL_ERROR', 'not yet', { retryable: true })
    })
    await engine.start()
    expect(await waitForJob(engine, await submit())).toMatchObject({ status: 'FAILED', attempts: 3 })
  })

  test('resolves at once with a job that had ended', async () => {
    const { engine, submit } = open()
    const id = await submit()
    await engine.run(id)
    expect(await waitForJob(engine, id)).toMatchObject({ status: 'SUCCEEDED' })
  })

  test('does not miss a job that ends while it looks', async () => {
    const { engine, submit } = open()
    const id = await submit()
    const { seen } = counted(engine)
    const job = await waitForJob(
      {
        ...seen,
        get: async () => {
          const before = await engine.get(id)
          await engine.run(id)
          return before
        },
      },
      id,
    )
    expect(job.status).toBe('SUCCEEDED')
  })

  test('says after the time limit what state the job is in and what to do', async () => {
    const { engine, submit } = open()
    const { seen, counts } = counted(engine)
    await expect(waitForJob(seen, await submit(), { timeoutMs: 5 })).rejects.toMatchObject({
      code: 'TIMEOUT',
      message: expect.stringMatching(/within 5 ms: it is QUEUED\. Call engine\.start\(\)/),
    })
    expect(counts.listeners).toBe(0)
  })

  test.each([Infinity, 2 ** 31])('waits, if told to wait %s ms', async (timeoutMs) => {
    const finish = gate()
    const { engine, submit } = open(() => finish.opened)
    await engine.start()
    const waiting = waitForJob(engine, await submit(), { timeoutMs })
    await Promise.race([waiting, new Promise((resolve) => setTimeout(resolve, 20))])
    finish.open()
    expect(await waiting).toMatchObject({ status: 'SUCCEEDED' })
  })

  test('rejects when the job is deleted or was never there', async () => {
    const { engine, submit } = open()
    const id = await submit()
    const waiting = waitForJob(engine, id)
    await engine.delete(id)
    await expect(waiting).rejects.toMatchObject({ code: 'NOT_FOUND', message: expect.stringContaining('deleted') })
    await expect(waitForJob(engine, 'nothing')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('ends with the reason of its signal', async () => {
    const { engine, submit } = open()
    const { seen, counts } = counted(engine)
    const aborting = new AbortController()
    const waiting = waitForJob(seen, await submit(), { signal: aborting.signal })
    const reason = new Error('enough')
    aborting.abort(reason)
    await expect(waiting).rejects.toBe(reason)
    expect(counts.listeners).toBe(0)
    await expect(waitForJob(seen, 'any', { signal: aborting.signal })).rejects.toBe(reason)
  })
})
