import { readFile } from 'node:fs/promises'
import type { S3Client } from '@aws-sdk/client-s3'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { s3Blobs } from '../../../src/adapters/blobs/s3/index.js'
import type { BlobStore } from '../../../src/core/engine/ports/blob-store.js'
import { type Logger, silentLogger } from '../../../src/core/engine/ports/logger.js'
import { defineWorkflow } from '../../../src/core/engine/workflow/workflow.js'
import { s3ClientOf } from '../../servers/s3-client.js'
import { type S3Request, type S3Server, startS3Server } from '../../servers/s3-server.js'
import { bytes, testEngine, textOf, textWorkflow } from '../harness.js'
import { resumeTime, stopTime } from '../stopped-time.js'

let server: S3Server
let client: S3Client
let blobs: BlobStore

beforeEach(async () => {
  server = await startS3Server()
  client = s3ClientOf(server, { maxAttempts: 1 })
  blobs = s3Blobs({ client, bucket: 'test' })
})

afterEach(async () => {
  resumeTime()
  client.destroy()
  await server.close()
})

/** Makes the server answer the first `times` requests of a kind with 503. Returns the number of failures. */
function awayFor(times: number, isMeant: (request: S3Request) => boolean, onFailure: () => void = () => {}) {
  let failures = 0
  server.fault = (request) => {
    if (!isMeant(request) || failures >= times) return undefined
    failures++
    onFailure()
    return 'slow down'
  }
  return () => failures
}

/**
 * Time stands still except for the waits between the store's attempts, 0.5 s, 1 s, 2 s and so on: the rest of the job
 * takes no time, however slow the machine is.
 */
function timeOfWaits(): Logger {
  stopTime()
  let waitMs = 250
  return {
    ...silentLogger,
    warn(_, message) {
      if (!message?.includes('the job waits for it')) return
      waitMs *= 2
      // The wait begins in this turn of the event loop, after the line about it is logged.
      setImmediate(() => void vi.advanceTimersByTimeAsync(waitMs))
    },
  }
}

describe('an outage of the blob store', () => {
  test('is waited out while results are stored: no second run, no attempt, no time lost, the lease kept', async () => {
    let runs = 0
    const lapsed: number[] = []
    const { engine, submit, parts } = testEngine(
      textWorkflow(() => void runs++),
      { limits: { jobTimeoutMs: 2500 }, dispatch: { leaseMs: 2000 }, logger: timeOfWaits() },
      { blobs },
    )
    const failures = awayFor(
      4,
      ({ method }) => method === 'PUT',
      () => void parts.jobs.due('lapsed', 1).then((jobs) => lapsed.push(jobs.length)),
    )
    const job = await submit()
    const ended = await engine.run(job.id)
    expect(ended).toMatchObject({ status: 'SUCCEEDED', attempts: 1, token: 1 })
    expect(await textOf(blobs, ended?.outputs?.text?.key ?? '')).toBe(`text of ${job.id}`)
    expect([runs, failures(), lapsed]).toEqual([1, 4, [0, 0, 0, 0]])
  })

  test('is waited out while an upload is read', async () => {
    const read: string[] = []
    const workflow = defineWorkflow({
      id: 'test/read',
      name: 'Read',
      description: 'Reads its input.',
      params: z.looseObject({}),
      inputs: ['inputUrl'],
      outputs: {},
      stages: [
        {
          name: 'read',
          run: async ({ inputs }) => void read.push(await readFile(inputs.inputUrl?.path ?? '', 'utf8')),
        },
      ],
    })
    const { engine } = testEngine(workflow, { logger: timeOfWaits() }, { blobs })
    await blobs.put('uploads/app/one', bytes('an upload'))
    const { job } = await engine.submit({
      app: 'app',
      workflow: workflow.id,
      params: { inputUrl: 'https://example.com/upload' },
      uploads: { inputUrl: 'uploads/app/one' },
    })
    const failures = awayFor(3, ({ method }) => method === 'GET')
    expect(await engine.run(job.id)).toMatchObject({ status: 'SUCCEEDED', attempts: 1 })
    expect([read, failures()]).toEqual([['an upload'], 3])
  })

  test('longer than `storageOutageMs` ends the job, which is not run again for it', async () => {
    let runs = 0
    const { engine, submit } = testEngine(
      textWorkflow(() => void runs++),
      { dispatch: { storageOutageMs: 0 } },
      { blobs },
    )
    awayFor(Infinity, ({ method }) => method === 'PUT')
    const job = await submit()
    expect(await engine.run(job.id)).toMatchObject({ status: 'FAILED', attempts: 1, error: { retryable: true } })
    expect(runs).toBe(1)
  })

  test('does not hold up a shutdown: the job is requeued without counting the attempt', async () => {
    const { engine, submit, parts } = testEngine(textWorkflow(), {}, { blobs })
    const failures = awayFor(Infinity, ({ method }) => method === 'PUT')
    await engine.start()
    const job = await submit()
    await expect.poll(failures).toBeGreaterThan(0)
    await engine.close({ timeoutMs: 0 })
    expect(await parts.jobs.get(job.id)).toMatchObject({ status: 'QUEUED', attempts: 0 })
  })
})
