import { expect, test, vi } from 'vitest'
import { memoryBlobs, memoryJobs } from '../../../src/adapters/memory.js'
import { sampleJob } from '../../../src/contract/job-samples.js'
import { needsDownload } from '../../../src/core/engine/dispatch/attempt/attempt-inputs.js'
import { jobEnds } from '../../../src/core/engine/dispatch/job-ends.js'
import type { JobRecord } from '../../../src/core/engine/job/job.js'
import { StoreClock } from '../../../src/core/engine/store-clock.js'
import type { Workflow } from '../../../src/core/engine/workflow/workflow.js'
import { recordingLogger } from '../../engine/harness.js'

const webhook = { url: 'https://receiver.example/', events: null }
const checkpoint = (id: string) => `checkpoints/${id}/1-n/part-0`
const settled = () => new Promise((resolve) => setImmediate(resolve))

/** Ends of a started worker, with this job and a checkpoint of it. Records all effects outside the store. */
async function ending(fields: Partial<JobRecord> = {}, { isStarted = true, isClaimed = false } = {}) {
  const noted: string[] = []
  const jobs = memoryJobs()
  const blobs = memoryBlobs()
  const { logger, lines } = recordingLogger()
  const { id, app, workflow } = sampleJob(fields)
  await jobs.create(sampleJob({ ...fields, id }))
  await blobs.put(checkpoint(id), 'kept')
  if (isClaimed) await jobs.claim({ owner: 'w', nonce: 'n', leaseMs: 60_000, labels: [], workflows: [workflow] })
  const parts = {
    jobs,
    blobs,
    logger,
    clock: new StoreClock(jobs),
    events: { announce: (name: string) => void noted.push(name) },
    options: { retention: { failedInputsMs: 1000, unusedUploadsMs: 1000 } },
    dispatcher: { interrupt: (of: string, { code }: { code: string }) => void noted.push(`${of === id} ${code}`) },
    maintenance: { isStarted, sendWebhooksSoon: () => void noted.push('send') },
    batches: { look: vi.fn(async () => void noted.push('batch')) },
    workers: { noteSuccess: () => void noted.push('success') },
  }
  const ends = jobEnds(parts as unknown as Parameters<typeof jobEnds>[0])
  return { ends, jobs, blobs, noted, lines, parts, id, app }
}

test('a job that waits is cancelled at once, with its message, and what it has kept goes', async () => {
  const { ends, jobs, blobs, noted, id } = await ending({ webhook, startedAt: 5 })
  expect(await ends.cancel(id, {})).toMatchObject({ id, status: 'FAILED', error: { code: 'CANCELED' } })
  expect((await jobs.get(id))?.deliveries).toMatchObject([{ event: 'job.failed' }])
  expect(noted).toEqual(['usage.recorded', 'send', 'job.failed'])
  expect(await blobs.stat(checkpoint(id))).toBeUndefined()
  // An ended job is returned unchanged.
  expect(await ends.cancel(id, {})).toMatchObject({ id, status: 'FAILED' })
  expect(noted).toHaveLength(3)
})

test('a job that never began has nothing kept, and an engine that runs nothing sends no message', async () => {
  const { ends, blobs, noted, id } = await ending({ webhook, startedAt: null }, { isStarted: false })
  await ends.cancel(id, {})
  expect(noted).toEqual(['usage.recorded', 'job.failed'])
  expect(await blobs.stat(checkpoint(id))).toBeDefined()
})

test('a job without a webhook has no message to send', async () => {
  const { ends, noted, id } = await ending()
  await ends.cancel(id, {})
  expect(noted).toEqual(['usage.recorded', 'job.failed'])
})

test('a job that runs here is interrupted, and ends by itself', async () => {
  const { ends, noted, id } = await ending({}, { isClaimed: true })
  expect(await ends.cancel(id, {})).toMatchObject({ status: 'STARTED', cancelRequested: true })
  expect(noted).toEqual(['true CANCELED'])
})

test('a deleted job is interrupted, announced and checked in its batch; it is returned as it was', async () => {
  const { ends, jobs, blobs, noted, id } = await ending({ batchName: 'b' }, { isClaimed: true })
  expect(await ends.delete(id, {})).toMatchObject({ id, status: 'STARTED', deleted: false })
  await settled()
  expect(noted).toEqual(['usage.recorded', 'true LEASE_LOST', 'job.deleted', 'batch', 'send'])
  expect([await jobs.get(id), await blobs.stat(checkpoint(id))]).toEqual([undefined, undefined])
  expect(await jobs.due('deleted', 1)).toEqual([])
})

test('a deletion records the usage of a job that is claimed just before, but none of one that never ran', async () => {
  const { ends, jobs, noted, id } = await ending()
  const [apply, claim] = [jobs.apply, jobs.claim]
  jobs.apply = async (...given) => {
    jobs.apply = apply
    await claim({ owner: 'w', nonce: 'n', leaseMs: 60_000, id })
    return apply(...given)
  }
  await ends.delete(id, {})
  expect(noted).toEqual(['usage.recorded', 'true LEASE_LOST', 'job.deleted'])
  expect((await jobs.ledger?.entries({ fromDay: 0, toDay: 1e6, limit: 9 }))?.map((entry) => entry.jobId)).toEqual([id])
  const waiting = await ending()
  await waiting.ends.delete(waiting.id, {})
  expect(waiting.noted).toEqual(['true LEASE_LOST', 'job.deleted'])
})

test.each([
  [true, { bytes: 7 }],
  [false, undefined],
])('a deletion ends a job that is metered (%s) with what it has used', async (metered, usage) => {
  const { ends, jobs, id } = await ending({ metered }, { isClaimed: true })
  const change = { kind: 'heartbeat', token: 1, nonce: 'n', leaseMs: 60_000, progress: 0, stage: null } as const
  await jobs.apply(id, { ...change, used: { bytes: 7, audioSeconds: 0, processorSeconds: 0 } })
  const applied = vi.spyOn(jobs, 'apply')
  await ends.delete(id, {})
  expect(applied.mock.calls[0]?.[1]).toMatchObject({ kind: 'cancel', force: true, usage })
})

test('a deletion ends a metered job that waits, of which nothing was used', async () => {
  const { ends, noted, id } = await ending({ metered: true, lease: null })
  await ends.delete(id, {})
  expect(noted).toEqual(['true LEASE_LOST', 'job.deleted'])
})

test('an engine that runs nothing checks the batch, too, but sends no message of it', async () => {
  const { ends, noted, id } = await ending({ batchName: 'b' }, { isStarted: false })
  await ends.delete(id, {})
  await settled()
  expect(noted).toEqual(['true LEASE_LOST', 'job.deleted', 'batch'])
  const cancelled = await ending({ batchName: 'b' }, { isStarted: false })
  await cancelled.ends.cancel(cancelled.id, {})
  await settled()
  expect(cancelled.noted).toEqual(['usage.recorded', 'batch', 'job.failed'])
})

test('a checkpoint that cannot be removed is left to the sweep, and the cancellation stands', async () => {
  const { ends, parts, lines, id } = await ending({ startedAt: 5 })
  parts.blobs.deletePrefix = () => Promise.reject(new Error('away'))
  expect(await ends.cancel(id, {})).toMatchObject({ status: 'FAILED' })
  expect(lines).toMatchObject([{ level: 'warn', fields: { jobId: id } }])
})

test('a success is counted for the estimates of its workflow, a failure is not', async () => {
  const { ends, noted } = await ending()
  for (const status of ['FAILED', 'SUCCEEDED'] as const) ends.report(sampleJob({ status, settlement: null }))
  expect(noted).toEqual(['success'])
})

test('a job of another application is neither cancelled nor deleted', async () => {
  const { ends, jobs, noted, id } = await ending()
  expect([await ends.cancel(id, { app: 'other' }), await ends.delete(id, { app: 'other' })]).toEqual([
    undefined,
    undefined,
  ])
  expect([noted, (await jobs.get(id))?.status]).toEqual([[], 'QUEUED'])
})

test('a job needs a download if an input is an address, and not an upload', () => {
  const workflow = { inputs: ['song', 'voice'] } as unknown as Workflow
  const needed = (params: JobRecord['params'], uploads: JobRecord['uploads'] = {}) =>
    needsDownload(workflow, sampleJob({ params, uploads }))
  expect(needed({ song: 'https://a.example/' })).toBe(true)
  expect(needed({ song: 'https://a.example/', voice: 'https://b.example/' }, { song: 'key' })).toBe(true)
  expect(needed({ song: 'https://a.example/' }, { song: 'key' })).toBe(false)
  expect(needed({ other: 'https://a.example/' })).toBe(false)
  expect(needsDownload(undefined, sampleJob())).toBe(false)
})
