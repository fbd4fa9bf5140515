import { describe, expect, test } from 'vitest'
import { StemworkError } from '../../../src/core/engine/errors.js'
import { memoryJobs } from '../../../src/adapters/memory.js'
import { createHandler } from '../../../src/http/index.js'
import { steppingClock, testEngine, textWorkflow } from '../harness.js'

/** Clients can see in the job that it is a retry, and why it waits. */

const temporary = () => {
  throw new StemworkError('INTERNAL_ERROR', 'the disk is gone', { retryable: true })
}

async function failedOnce(times: { notBefore?: number } = {}) {
  const workflow = textWorkflow(temporary)
  const { engine } = testEngine(workflow, { dispatch: { retryDelayMs: 3_600_000, retryJitter: 0, maxAttempts: 4 } })
  const { job } = await engine.submit({ app: 'a', workflow: workflow.id, ...times })
  const after = await engine.runOnce(job.id)
  const handler = createHandler(engine, { anonymous: { id: 'a', name: 'A' } })
  const view = (await (await handler(new Request(`http://localhost/job/${job.id}`))).json()) as Record<string, unknown>
  return { engine, job, after, view }
}

describe('a job whose attempt failed for a temporary reason', () => {
  test('is QUEUED with the attempt, how many there may be, when the next is due, and why it waits', async () => {
    const { engine, after, view } = await failedOnce()
    expect(after).toMatchObject({ status: 'QUEUED', notBefore: 0, attempts: 1 })
    const due = new Date(after?.dueAt ?? 0).toISOString()
    expect(view).toMatchObject({
      status: 'QUEUED',
      attempt: 1,
      attempts: 4,
      retryAt: due,
      notBefore: null,
      waiting: { reason: 'retrying', message: `Its last attempt failed, and it is tried again at ${due}.` },
    })
    await engine.close()
  })

  test('keeps the notBefore that its client sent, and the time of its first start', async () => {
    const notBefore = Date.now() - 60_000
    const { engine, after, view } = await failedOnce({ notBefore })
    expect(view.notBefore).toBe(new Date(notBefore).toISOString())
    expect(view.startedAt).toBe(new Date(after?.history[0]?.startedAt ?? 0).toISOString())
    await engine.close()
  })

  test('has no retryAt before its first attempt, nor once it has ended', async () => {
    const workflow = textWorkflow()
    const { engine } = testEngine(workflow)
    const { job } = await engine.submit({ app: 'a', workflow: workflow.id, notBefore: Date.now() + 60_000 })
    const handler = createHandler(engine, { anonymous: { id: 'a', name: 'A' } })
    const view = async (id: string) =>
      (await (await handler(new Request(`http://localhost/job/${id}`))).json()) as Record<string, unknown>
    expect(await view(job.id)).toMatchObject({
      attempt: 0,
      attempts: 3,
      retryAt: null,
      waiting: { reason: 'scheduled', message: expect.stringMatching(/^It does not start before /) },
    })
    const { job: other } = await engine.submit({ app: 'a', workflow: workflow.id })
    await engine.run(other.id)
    expect(await view(other.id)).toMatchObject({ status: 'SUCCEEDED', attempt: 1, attempts: 3, retryAt: null })
    await engine.close()
  })
})

test("the time of a later attempt does not move the start: startedAt is the first one's", async () => {
  const clock = steppingClock()
  const jobs = memoryJobs({ clock: clock.now })
  let failures = 1
  const workflow = textWorkflow(() => (failures-- > 0 ? temporary() : undefined))
  const { engine } = testEngine(workflow, { dispatch: { retryJitter: 0 } }, { jobs })
  const { job } = await engine.submit({ app: 'a', workflow: workflow.id })
  const first = await engine.runOnce(job.id)
  clock.advance(60_000)
  const second = await engine.runOnce(job.id)
  expect(second).toMatchObject({ status: 'SUCCEEDED', startedAt: first?.startedAt })
  await engine.close()
})
