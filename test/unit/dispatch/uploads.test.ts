import { expect, test } from 'vitest'
import { memoryBlobs } from '../../../src/adapters/memory.js'
import { isUploadInUse, removeUploads } from '../../../src/core/engine/dispatch/sweep/uploads.js'
import { localUploadKey } from '../../../src/core/engine/job/blob-keys.js'
import type { JobRecord } from '../../../src/core/engine/job/job.js'
import type { EngineOptions } from '../../../src/core/engine/options.js'
import type { BlobStore } from '../../../src/core/engine/ports/blob-store.js'
import type { JobStore } from '../../../src/core/engine/ports/job-store.js'
import { StoreClock } from '../../../src/core/engine/store-clock.js'

const expired = { status: 'FAILED', expiresAt: 1, uploads: { song: 'upload' } }
const kept = { ...expired, expiresAt: Date.now() + 60_000 }
const withStatus = (status: string) => ({ ...expired, status })

/** A store of these jobs that answers only the queries used here. */
function storeOf(all: readonly { status: string; uploads: { song: string } }[]): JobStore {
  type Query = { uploadKey: string; statuses: string[]; limit?: number }
  const found = ({ uploadKey, statuses, limit }: Query) =>
    all.filter(({ status, uploads }) => uploads.song === uploadKey && statuses.includes(status)).slice(0, limit)
  return {
    count: async (query: Query, { max }: { max: number }) => Math.min(max, found(query).length),
    list: async (query: Query) => found(query),
  } as unknown as JobStore
}

const portsOf = (all: Parameters<typeof storeOf>[0]) => {
  const clock = new StoreClock({ traits: { scope: 'process' }, time: async () => Date.now() })
  return { jobs: storeOf(all), clock }
}
const inUse = (...all: { status: string; uploads: { song: string } }[]) => isUploadInUse('upload', portsOf(all))

test('an upload is in use by a job that waits, runs, or may be retried', async () => {
  expect(await inUse()).toBe(false)
  expect(await inUse(withStatus('QUEUED'))).toBe(true)
  expect(await inUse(withStatus('STARTED'))).toBe(true)
  expect(await inUse(expired, kept)).toBe(true)
  expect(await inUse(withStatus('SUCCEEDED'), withStatus('CANCELED'), expired)).toBe(false)
  expect(await inUse({ ...kept, uploads: { song: 'another' } })).toBe(false)
})

test('an upload of a hundred failed jobs is kept: more may have failed than are checked', async () => {
  expect(await inUse(...Array.from({ length: 99 }, () => expired))).toBe(false)
  expect(await inUse(...Array.from({ length: 100 }, () => expired))).toBe(true)
  expect(await inUse(...Array.from({ length: 101 }, () => expired))).toBe(true)
})

/** Changes to the uploads of a deleted job. */
async function changesOf(uploads: JobRecord['uploads'], ageMs = 0): Promise<string[]> {
  const changes: string[] = []
  const blobs = {
    put: async (key: string) => void changes.push(`put ${key}`),
    delete: async (key: string) => void changes.push(`delete ${key}`),
  } as unknown as BlobStore
  const job = { createdAt: Date.now() - ageMs, uploads } as unknown as JobRecord
  const options = { retention: { unusedUploadsMs: 60_000 } } as EngineOptions
  await removeUploads(job, { ...portsOf([kept]), blobs, options })
  return changes
}

test('the uploads of a deleted job are removed, but not those in use; before, their tickets are marked', async () => {
  expect(await changesOf({ song: 'upload', video: 'film', picture: 'cover' })).toEqual([
    'put film.used',
    'delete film',
    'put cover.used',
    'delete cover',
  ])
})

test('no mark is left if no ticket can still be valid, or none was issued', async () => {
  expect(await changesOf({ video: 'film' }, 61_000)).toEqual(['delete film'])
  expect(await changesOf({ video: localUploadKey('app', '1') })).toEqual(['delete uploads/app/local-1'])
})

test('an upload that a job begins to use while its ticket is marked stays, and the mark goes', async () => {
  const blobs = memoryBlobs()
  await blobs.put('film', '')
  const jobs = [kept]
  const put = blobs.put
  blobs.put = (...given) => (jobs.push({ ...withStatus('QUEUED'), uploads: { song: 'film' } }), put(...given))
  const job = { createdAt: Date.now(), uploads: { song: 'film' } } as unknown as JobRecord
  const options = { retention: { unusedUploadsMs: 60_000 } } as EngineOptions
  await removeUploads(job, { ...portsOf(jobs), blobs, options })
  expect([await blobs.stat('film'), await blobs.stat('film.used')]).toEqual([expect.anything(), undefined])
})
