import { mkdir, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Dispatcher } from '../../../src/core/engine/dispatch/dispatcher.js'
import { growingResult, type GrowingResult } from '../../../src/core/engine/dispatch/growing-result.js'
import type { JobRecord } from '../../../src/core/engine/job/job.js'
import type { JobStore } from '../../../src/core/engine/ports/job-store.js'
import { growingOutputFile, growingPeaksFile } from '../../../src/core/engine/runner/run-folder.js'
import type { WorkflowRegistry } from '../../../src/core/engine/workflow/registry.js'
import { folderOfEachTest } from '../../temporary-folder.js'

const declaration = { contentType: 'audio/wav', fileName: 'vocals.wav' }
const started = { id: 'job', workflow: 'sing', status: 'STARTED', token: 3, params: { loud: true } }
const succeeded = (bytes: number) => ({ ...started, status: 'SUCCEEDED', outputs: { vocals: { bytes } } })

const directory = folderOfEachTest()
const path = join(directory, growingOutputFile('vocals', declaration.fileName))
/** The stored job; undefined: the job is deleted. */
let stored: object | undefined
/** Whether the job runs in this process. */
let isHere = true
let looks = 0
let open: GrowingResult | undefined

beforeEach(() => {
  stored = started
  isHere = true
  looks = 0
})

afterEach(async () => {
  await open?.close()
  open = undefined
})

/** Grows a result with only the needed functions of the engine's other parts. */
async function grow(job: object = started, output = 'vocals', ofPeaks = false) {
  const workflow = {
    params: { parse: (params: { loud: boolean }) => params },
    outputs: ({ loud }: { loud: boolean }) => (loud ? { vocals: declaration } : {}),
  }
  const parts = {
    jobs: { get: async (id: string) => (looks++, id === 'job' ? stored : undefined) } as unknown as JobStore,
    workflows: { get: (id: string) => (id === 'sing' ? workflow : undefined) } as unknown as WorkflowRegistry,
    dispatcher: { scratchOf: async () => (isHere ? directory : undefined) } as unknown as Dispatcher,
  }
  open = await growingResult(job as JobRecord, output, parts, ofPeaks)
  return open
}

async function read(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const all: Uint8Array[] = []
  for await (const chunk of chunks) all.push(chunk)
  return Buffer.concat(all).toString()
}

test('only a declared file of a job that runs here, and of a workflow known here, can be read', async () => {
  expect(await grow()).toBeUndefined()
  await writeFile(path, 'la')
  expect(await grow({ ...started, status: 'QUEUED' })).toBeUndefined()
  expect(await grow({ ...started, workflow: 'hum' })).toBeUndefined()
  expect(await grow({ ...started, params: { loud: false } })).toBeUndefined()
  expect(await grow(started, 'toString')).toBeUndefined()
  isHere = false
  expect(await grow()).toBeUndefined()
  isHere = true
  expect(await grow()).toMatchObject({ ...declaration, bytes: 2 })
})

test('the peaks of a file can be read as it grows, under a name of their own', async () => {
  await writeFile(join(directory, growingPeaksFile('vocals', declaration.fileName)), '\0\x01\x02')
  expect(await grow()).toBeUndefined()
  const peaks = await grow(started, 'vocals', true)
  expect(peaks).toMatchObject({ contentType: 'application/octet-stream', fileName: 'vocals.dat', bytes: 3 })
})

// Windows lacks a flag against links, and a list of open files.
test.skipIf(process.platform === 'win32')('a link or a folder is not a result', async () => {
  await writeFile(join(directory, 'secret'), 'secret')
  await symlink(join(directory, 'secret'), path)
  expect(await grow()).toBeUndefined()
  await rm(path)
  await mkdir(path)
  const files = await readdir('/dev/fd')
  expect(await grow()).toBeUndefined()
  expect(await readdir('/dev/fd')).toHaveLength(files.length)
})

test('a part has both of its ends, and reading it ends the reading', async () => {
  await writeFile(path, '0123456789')
  const result = (await grow())!
  expect(await read(result.part(2, 4))).toBe('234')
  await expect(read(result.part(2, 4))).rejects.toMatchObject({ code: 'EBADF' })
})

test('a part is read in chunks of at most 64 KiB', async () => {
  const content = Buffer.alloc(150_000, 'abc')
  await writeFile(path, content)
  const lengths: number[] = []
  const all: Uint8Array[] = []
  for await (const chunk of (await grow())!.part(0, content.length - 1)) {
    lengths.push(chunk.length)
    all.push(chunk)
  }
  expect(lengths).toEqual([65_536, 65_536, 150_000 - 2 * 65_536])
  expect(Buffer.concat(all).equals(content)).toBe(true)
})

test('a part that is not written yet is an error', async () => {
  await writeFile(path, 'abc')
  const part = (await grow())!.part(0, 3)[Symbol.asyncIterator]()
  expect(Buffer.from((await part.next()).value).toString()).toBe('abc')
  await expect(part.next()).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test('nothing can be read once it is closed, and it can be closed twice', async () => {
  await writeFile(path, 'abc')
  const result = (await grow())!
  await result.close()
  await result.close()
  await expect(read(result.part(0, 0))).rejects.toMatchObject({ code: 'EBADF' })
})

test('a follower gets what exists at once, and the rest after the success', async () => {
  await writeFile(path, 'do re ')
  const result = (await grow())!
  const chunks = result.follow(new AbortController().signal)[Symbol.asyncIterator]()
  expect(Buffer.from((await chunks.next()).value).toString()).toBe('do re ')
  await writeFile(path, 'mi ', { flag: 'a' })
  expect(Buffer.from((await chunks.next()).value).toString()).toBe('mi ')
  expect(looks).toBe(1)
  await rename(path, join(directory, 'vocals.wav'))
  // The store has appended bytes that are not the job's.
  await writeFile(join(directory, 'vocals.wav'), 'fa!!', { flag: 'a' })
  stored = succeeded(11)
  expect(Buffer.from((await chunks.next()).value).toString()).toBe('fa')
  expect((await chunks.next()).done).toBe(true)
  await expect(read(result.part(0, 0))).rejects.toMatchObject({ code: 'EBADF' })
})

test('bytes under the final name are only read after the success', async () => {
  await writeFile(path, 'do')
  const result = (await grow())!
  await rename(path, join(directory, 'vocals.wav'))
  await writeFile(path, 'another file')
  const following = read(result.follow(new AbortController().signal))
  await expect.poll(() => looks).toBeGreaterThan(1)
  stored = succeeded(1)
  expect(await following).toBe('d')
})

test.each([
  ['failed', { ...started, status: 'FAILED' }],
  ['waits for its next attempt', { ...started, status: 'QUEUED' }],
  ['runs again', { ...started, token: 4 }],
  ['succeeded without this result', { ...started, status: 'SUCCEEDED', outputs: {} }],
  ['succeeded and its results are deleted', { ...started, status: 'SUCCEEDED' }],
  ['was deleted', undefined],
])('following ends with an error if the job %s', async (_, now) => {
  await writeFile(path, 'do')
  const result = (await grow())!
  stored = now
  const following = read(result.follow(new AbortController().signal))
  await expect(following).rejects.toMatchObject({ code: 'NOT_FOUND' })
  await expect(following).rejects.toThrow('The job has ended without this result, or is being run again.')
})

test('following ends when its signal is aborted', async () => {
  await writeFile(path, 'do')
  const result = (await grow())!
  const abort = new AbortController()
  const following = read(result.follow(abort.signal))
  await expect.poll(() => looks).toBe(1)
  abort.abort()
  await expect(following).rejects.toThrow(expect.objectContaining({ name: 'AbortError' }))
})

test('the job is checked again after two seconds without news from the file', async () => {
  await writeFile(path, 'do')
  const result = (await grow())!
  const following = read(result.follow(new AbortController().signal))
  following.catch(() => {})
  await expect.poll(() => looks).toBe(1)
  stored = { ...started, status: 'FAILED' }
  await expect(following).rejects.toMatchObject({ code: 'NOT_FOUND' })
  expect(looks).toBe(2)
})
