import { beforeEach, expect, test } from 'vitest'
import { memoryBlobs } from '../../../src/adapters/blobs/memory/memory-blobs.js'
import { beginFilePass } from '../../../src/core/engine/dispatch/sweep/deployment-marker.js'
import type { SweepPorts } from '../../../src/core/engine/dispatch/sweep/sweep.js'
import { StemworkError } from '../../../src/core/engine/errors.js'
import type { BlobStore } from '../../../src/core/engine/ports/blob-store.js'

let blobs: BlobStore
let errors: object[]

beforeEach(() => {
  blobs = memoryBlobs()
  errors = []
})

/** Begins a pass with a job store that grants it. */
function begin(granted: { deployment: string; pass: number } | undefined, files: BlobStore = blobs) {
  const jobs = { beginFilePass: async (everyMs: number) => (everyMs === 5000 ? granted : undefined) }
  const logger = { error: (fields: object) => void errors.push(fields) }
  return beginFilePass({ jobs, blobs: files, logger } as unknown as SweepPorts, 5000)
}

async function marker() {
  const found = await blobs.get('deployment')
  if (!found) return undefined
  const chunks: Uint8Array[] = []
  for await (const chunk of found.body) chunks.push(chunk)
  return { type: found.stat.contentType, ...JSON.parse(Buffer.concat(chunks).toString()) }
}

test('the files are marked with their job store and its last pass', async () => {
  expect(await begin({ deployment: 'a', pass: 1 })).toEqual({
    isOwn: true,
    now: (await blobs.stat('deployment'))?.modifiedAt,
  })
  expect(await marker()).toEqual({ type: 'application/json', deployment: 'a', pass: 1 })
  expect(await begin({ deployment: 'a', pass: 2 })).toEqual({
    isOwn: true,
    now: (await blobs.stat('deployment'))?.modifiedAt,
  })
  expect(await marker()).toEqual({ type: 'application/json', deployment: 'a', pass: 2 })
  expect(errors).toEqual([])
})

test('nothing happens when no pass is due', async () => {
  expect(await begin(undefined)).toBeUndefined()
  expect(await marker()).toBeUndefined()
})

test('another job store may not remove files', async () => {
  await begin({ deployment: 'a', pass: 1 })
  const pass = await begin({ deployment: 'b', pass: 7 })
  expect(pass).toEqual({ isOwn: false, problem: expect.stringContaining('belong to another job store') })
  expect(errors).toEqual([{ key: 'deployment', files: 'a', jobs: 'b' }])
  expect(await marker()).toMatchObject({ deployment: 'a', pass: 1 })
})

test.each([2, 3])(
  'a job store that was restored before its third pass (at pass %i) may not judge',
  async (restored) => {
    await begin({ deployment: 'a', pass: 3 })
    const pass = await begin({ deployment: 'a', pass: restored })
    expect(pass).toEqual({ isOwn: false, problem: expect.stringContaining('older than the files') })
    expect(errors).toEqual([{ key: 'deployment', files: 3, jobs: restored }])
    // Nor later: its own passes never reach one that counts.
    expect(await begin({ deployment: 'a', pass: 4 })).toMatchObject({ isOwn: false })
    expect(await marker()).toMatchObject({ deployment: 'a', pass: Number.MAX_SAFE_INTEGER })
  },
)

test('of two processes that mark the files first, one makes the pass; other errors are thrown', async () => {
  const failing = (error: Error) => ({ ...blobs, put: () => Promise.reject(error) })
  const first = { deployment: 'a', pass: 1 }
  expect(await begin(first, failing(new StemworkError('ALREADY_EXISTS', 'There is one.')))).toBeUndefined()
  const outage = new StemworkError('STORE_UNAVAILABLE', 'No store.')
  await expect(begin(first, failing(outage))).rejects.toBe(outage)
  await expect(begin(first, failing(new Error('broken')))).rejects.toThrow('broken')
  const late = { ...blobs, get: async () => undefined }
  await begin(first)
  expect(await begin({ deployment: 'a', pass: 2 }, late)).toBeUndefined()
  expect(await marker()).toMatchObject({ pass: 1 })
})

test('without the marker that was just written, no pass is made', async () => {
  const removing = { ...blobs, stat: async () => undefined }
  expect(await begin({ deployment: 'a', pass: 1 }, removing)).toBeUndefined()
})
