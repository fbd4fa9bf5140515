import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { memoryBlobs, memoryJobs } from '../../../src/adapters/memory.js'
import { badInput, internalError } from '../../../src/core/engine/errors.js'
import { sampleError, sampleJob } from '../../../src/contract/job-samples.js'
import { checkpointsPrefix } from '../../../src/core/engine/job/checkpoint-keys.js'
import { isWorthKeeping, keepsInputs, keepsWork } from '../../../src/core/engine/job/retry.js'
import { defineWorkflow } from '../../../src/core/engine/workflow/workflow.js'
import { bytes, keys, steppingClock, testEngine, textWorkflow } from '../harness.js'

const day = 24 * 3_600_000
/** Fails with the given errors in turn, and remembers its inputs. */
function readingWorkflow(failures: Error[]) {
  const read: string[] = []
  const workflow = defineWorkflow({
    id: 'test/read',
    name: 'Read',
    description: 'Reads.',
    params: z.looseObject({}),
    outputs: {},
    policy: { maxAttempts: 1 },
    stages: [
      {
        name: 'read',
        async run({ inputs }) {
          read.push(await readFile(inputs.inputUrl?.path ?? '', 'utf8'))
          const failure = failures.shift()
          if (failure) throw failure
        },
      },
    ],
  })
  return { workflow, read }
}

describe('what a retry would need', () => {
  const failed = sampleJob({ status: 'FAILED', error: sampleError, expiresAt: 100 })

  test('is kept until the job expires, if it failed', () => {
    expect([99, 100].map((now) => keepsInputs(failed, now))).toEqual([true, false])
    expect(keepsInputs({ ...failed, status: 'SUCCEEDED' }, 99)).toBe(false)
    expect(keepsInputs({ ...failed, expiresAt: null }, -1)).toBe(false)
  })

  test('includes its work after failures of the service and runs that took too long', () => {
    const worth = (['INTERNAL_ERROR', 'TIMEOUT', 'BAD_INPUT', 'CANCELED'] as const).filter((code) =>
      isWorthKeeping({ ...sampleError, code }),
    )
    expect(worth).toEqual(['INTERNAL_ERROR', 'TIMEOUT'])
    expect(isWorthKeeping(null)).toBe(false)
    expect([99, 100].map((now) => keepsWork(failed, now))).toEqual([true, false])
  })

  test('includes no work of a job that missed its deadline, since a retry would miss it, too', () => {
    const error = { ...sampleError, code: 'TIMEOUT' as const, reason: 'deadline' }
    expect(isWorthKeeping(error)).toBe(false)
    expect(keepsWork({ ...failed, error }, 99)).toBe(false)
    expect(keepsInputs({ ...failed }, 99)).toBe(true)
  })
})

describe('a failed job', () => {
  test('is run again with its upload, as if it were new, and says so', async () => {
    const { workflow, read } = readingWorkflow([internalError(new Error('x'))])
    const { engine, events } = testEngine(workflow)
    await engine.blobs.put('uploads/app/1', bytes('song'))
    const { job } = await engine.submit({ app: 'app', workflow: workflow.id, uploads: { inputUrl: 'uploads/app/1' } })
    expect(await engine.run(job.id)).toMatchObject({ status: 'FAILED', attempts: 1 })
    expect(await engine.retry(job.id, { app: 'other' })).toBeUndefined()
    expect(await engine.retry(job.id)).toMatchObject({ status: 'QUEUED', attempts: 0, retries: 1, error: null })
    expect(await engine.run(job.id)).toMatchObject({ status: 'SUCCEEDED', attempts: 1, retries: 1 })
    expect(read).toEqual(['song', 'song'])
    expect(events).toEqual(['job.created', 'job.started', 'job.failed', 'job.requeued', 'job.started', 'job.succeeded'])
  })

  test('is run again at once by a waiting worker', async () => {
    let failures = 1
    const workflow = textWorkflow(() => {
      if (failures-- > 0) throw badInput('decode_failed', 'no')
    })
    const { engine, submit, until } = testEngine(workflow, { dispatch: { sweepIntervalMs: 3_600_000 } })
    await engine.start()
    onTestFinished(() => engine.close())
    const { id } = await submit()
    await until(id, 'FAILED')
    await engine.retry(id)
    await until(id, 'SUCCEEDED')
  })

  test('keeps its upload until the time that it shows, and is refused with the reason afterwards', async () => {
    const { workflow } = readingWorkflow([badInput('decode_failed', 'no')])
    const clock = steppingClock(Date.now())
    const jobs = memoryJobs({ clock: clock.now })
    const retention = { failedInputsMs: 2 * day, unusedUploadsMs: 0 }
    const { engine } = testEngine(workflow, { retention }, { jobs })
    await engine.blobs.put('uploads/app/1', bytes('song'))
    const { job } = await engine.submit({ app: 'app', workflow: workflow.id, uploads: { inputUrl: 'uploads/app/1' } })
    const failed = await engine.run(job.id)
    expect(failed?.expiresAt).toBe(clock.now() + 2 * day)
    await new Promise((resolve) => setTimeout(resolve, 2))
    expect((await engine.sweep({ files: true })).uploads).toBe(0)
    clock.advance(2 * day)
    expect((await engine.sweep({ files: true })).uploads).toBe(1)
    await expect(engine.retry(job.id)).rejects.toMatchObject({ code: 'INPUT_EXPIRED' })
  })

  test('takes its upload with it when it is deleted, unless another failed job may need it', async () => {
    const { workflow } = readingWorkflow([badInput('decode_failed', 'no'), badInput('decode_failed', 'no')])
    const { engine } = testEngine(workflow)
    await engine.blobs.put('uploads/app/1', bytes('song'))
    const submitted = { app: 'app', workflow: workflow.id, uploads: { inputUrl: 'uploads/app/1' } }
    const jobs = [(await engine.submit(submitted)).job, (await engine.submit(submitted)).job]
    for (const { id } of jobs) await engine.run(id)
    await engine.delete(jobs[0]?.id ?? '')
    expect(await keys(engine.blobs)).toEqual(['uploads/app/1'])
    await engine.delete(jobs[1]?.id ?? '')
    expect(await keys(engine.blobs)).toEqual(['uploads/app/1.used'])
  })

  test('that downloaded its input does not download it again, and a delete removes what was kept', async () => {
    let requests = 0
    const server = createServer((_, response) => {
      requests++
      response.end('song')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const inputUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/song`
    const { workflow, read } = readingWorkflow([
      internalError(new Error('x')),
      internalError(new Error('x')),
      badInput('decode_failed', 'no'),
    ])
    const blobs = { ...memoryBlobs(), traits: { scope: 'shared' as const } }
    const { engine } = testEngine(workflow, { fetch: { allowPrivate: true }, retention: { orphansMs: 0 } }, { blobs })
    const { job } = await engine.submit({ app: 'app', workflow: workflow.id, params: { inputUrl } })
    const keptNow = () => keys(blobs, [checkpointsPrefix])
    for (let run = 0; run < 2; run++) {
      expect(await engine.run(job.id)).toMatchObject({ status: 'FAILED', error: { code: 'INTERNAL_ERROR' } })
      await engine.sweep({ files: true })
      expect((await keptNow()).length).toBe(1)
      await engine.retry(job.id)
    }
    expect([requests, read]).toEqual([1, ['song', 'song']])
    // Nothing is kept when the client's file is to blame.
    expect(await engine.run(job.id)).toMatchObject({ status: 'FAILED', error: { code: 'BAD_INPUT' } })
    expect(await keptNow()).toEqual([])
    const other = await engine.submit({ app: 'app', workflow: workflow.id, params: { inputUrl } })
    await engine.run(other.job.id)
    expect(await keptNow()).toEqual([])
  })

  test('is the only one that is run again', async () => {
    const { engine, submit } = testEngine(textWorkflow(), { limits: { maxQueuedJobs: 1 } })
    const waiting = await submit()
    await expect(engine.retry(waiting.id)).rejects.toMatchObject({ code: 'NOT_FAILED' })
    await engine.cancel(waiting.id)
    await submit()
    await expect(engine.retry(waiting.id)).rejects.toMatchObject({ code: 'QUEUE_FULL' })
    await engine.schedule({ kind: 'deployment' }, { state: 'draining' })
    await expect(engine.retry(waiting.id)).rejects.toMatchObject({ code: 'DRAINING' })
    expect(await engine.retry('unknown')).toBeUndefined()
  })
})
