import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { fsBlobs } from '../../../src/adapters/blobs/fs/index.js'
import type { BlobStore } from '../../../src/core/engine/ports/blob-store.js'
import { folderOfEachTest } from '../../temporary-folder.js'

const key = 'uploads/app/ticket'
const directory = folderOfEachTest()
let store: BlobStore

beforeEach(() => void (store = fsBlobs({ directory })))

async function localFile() {
  if (!store.localFile) throw new Error('the store of a folder has a file for each blob')
  return store.localFile(key)
}

describe('the file of a blob in a folder', () => {
  test.each(['', 'the samples'])('begins with the blob, and its size is that of the blob: "%s"', async (content) => {
    await store.put(key, content)
    const file = await localFile()
    expect(file?.bytes).toBe(content.length)
    expect((await readFile(file?.path ?? '')).toString('utf8', 0, file?.bytes)).toBe(content)
  })

  test('is absent without a blob, or where a folder has its name', async () => {
    expect(await localFile()).toBeUndefined()
    await store.put(`${key}/deeper`, 'another')
    expect(await localFile()).toBeUndefined()
  })

  test('is reported damaged when its end is missing', async () => {
    await store.put(key, 'the samples')
    await writeFile(join(directory, key), 'the sam')
    await expect(localFile()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  })
})
