import { appendFile, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { fsBlobs } from '../../src/adapters/blobs/fs/index.js'
import type { BlobStore } from '../../src/core/engine/ports/blob-store.js'

const key = 'uploads/app/ticket'
let folder: string
let directory: string
let store: BlobStore
let path: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stemwork-copied-'))
  directory = join(folder, 'blobs')
  store = fsBlobs({ directory })
  path = join(folder, 'copy')
})
afterEach(() => rm(folder, { recursive: true }))

async function getFile(signal?: AbortSignal) {
  if (!store.getFile) throw new Error('the store of a folder copies files')
  return store.getFile(key, path, { signal })
}

describe('the file of a blob in a folder', () => {
  test.each(['', 'the samples', 'x'.repeat(3_000_000)])('is copied without what the store adds', async (content) => {
    await store.put(key, content)
    expect(await getFile()).toBe(content.length)
    expect(await readFile(path, 'utf8')).toBe(content)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
  })

  test('is a file of its own: what is written to it does not change the blob', async () => {
    await store.put(key, 'the samples')
    await getFile()
    await appendFile(path, ' and more')
    expect((await store.stat(key))?.bytes).toBe(11)
  })

  test('is absent without a blob, or where a folder has its name', async () => {
    expect(await getFile()).toBeUndefined()
    await store.put(`${key}/deeper`, 'another')
    expect(await getFile()).toBeUndefined()
    expect(await readdir(folder)).toEqual(['blobs'])
  })

  test('never replaces a file', async () => {
    await store.put(key, 'the samples')
    await writeFile(path, 'somebody else')
    await expect(getFile()).rejects.toMatchObject({ code: 'EEXIST' })
    expect(await readFile(path, 'utf8')).toBe('somebody else')
  })

  test('is reported damaged when its end is missing, and leaves no copy', async () => {
    await store.put(key, 'the samples')
    await writeFile(join(directory, key), 'the sam')
    await expect(getFile()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(await readdir(folder)).toEqual(['blobs'])
  })

  test('leaves no copy when it is stopped', async () => {
    await store.put(key, 'the samples')
    const { signal } = new AbortController()
    let looks = 0
    // Looked at before the copy, and after it.
    signal.throwIfAborted = () => {
      if (++looks === 2) throw new Error('stopped')
    }
    await expect(getFile(signal)).rejects.toThrow('stopped')
    expect(await readdir(folder)).toEqual(['blobs'])
  })

  test('says which folder is missing where it should be written', async () => {
    await store.put(key, 'the samples')
    path = join(folder, 'nothing', 'copy')
    await expect(getFile()).rejects.toMatchObject({ code: 'ENOENT' })
  })
})
