import { link, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { fsBlobs } from '../../../src/adapters/blobs/fs/index.js'
import { readKey } from '../../../src/contract/blob-samples.js'
import type { BlobStore } from '../../../src/core/engine/ports/blob-store.js'
import { folderOfEachTest } from '../../temporary-folder.js'

const key = 'results/job/1/vocals.wav'
const folder = folderOfEachTest()
const directory = join(folder, 'blobs')
const source = join(folder, 'output.wav')
let store: BlobStore

beforeEach(async () => {
  store = fsBlobs({ directory })
  await writeFile(source, 'the samples')
})

async function putFile(path = source, signal?: AbortSignal) {
  if (!store.putFile) throw new Error('the store of a folder moves files')
  return store.putFile(key, path, { contentType: 'audio/wav', signal })
}

/** Files of the store, whatever their names. */
async function filesIn(path: string): Promise<string[]> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true }).catch(() => [])
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name)
}

describe('a file that is put into a folder on its disk', () => {
  test('becomes the blob: the same inode, with the facts of a put, and nothing left where it was', async () => {
    const { ino } = await stat(source)
    const put = await putFile()
    expect((await stat(join(directory, key))).ino).toBe(ino)
    expect((await stat(join(directory, key))).nlink).toBe(1)
    expect(put).toMatchObject({ key, bytes: 11, contentType: 'audio/wav' })
    expect(await store.stat(key)).toEqual(put)
    expect(await readKey(store, key)).toBe('the samples')
    expect(await filesIn(folder)).toEqual(['vocals.wav'])
  })

  test('is copied if it has another name, whose bytes stay as they are', async () => {
    const other = join(folder, 'another name.wav')
    await link(source, other)
    await putFile()
    expect(await readKey(store, key)).toBe('the samples')
    expect(await readFile(other, 'utf8')).toBe('the samples')
    await putFile(other)
    expect(await readKey(store, key)).toBe('the samples')
    expect(await filesIn(folder)).toEqual(['vocals.wav'])
  })

  test('replaces a blob', async () => {
    const first = await putFile()
    await writeFile(source, 'others')
    expect((await putFile()).etag).not.toBe(first.etag)
    expect(await readKey(store, key)).toBe('others')
  })

  test('stays as it was when the put fails, so that the next one succeeds', async () => {
    // Nothing can be stored there: a file has the name of the folder.
    await writeFile(join(folder, 'blobs'), '')
    await expect(putFile()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(await readFile(source, 'utf8')).toBe('the samples')
    await rm(join(folder, 'blobs'))
    await putFile()
    expect(await readKey(store, key)).toBe('the samples')
  })

  test('stays as it was when its folder is deleted just before it is published', async () => {
    const { signal } = new AbortController()
    let looks = 0
    // The signal is checked before any work, and before the blob appears.
    signal.throwIfAborted = () => {
      if (++looks === 2) rmSync(join(directory, 'results'), { recursive: true })
    }
    await expect(putFile(source, signal)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect(await readFile(source, 'utf8')).toBe('the samples')
    expect(await filesIn(directory)).toEqual([])
  })

  test('stays as it was when the put is aborted', async () => {
    const controller = new AbortController()
    const aborted = putFile(source, controller.signal)
    controller.abort(new Error('stopped'))
    await expect(aborted).rejects.toThrow('stopped')
    expect(await readFile(source, 'utf8')).toBe('the samples')
    expect((await stat(source)).nlink).toBe(1)
    expect(await filesIn(directory)).toEqual([])
  })

  test('is reported as missing, not as a failure of the store', async () => {
    await expect(putFile(join(folder, 'nothing'))).rejects.toMatchObject({ code: 'ENOENT' })
  })

  test('is copied where a symbolic link leads to it', async () => {
    await symlink(source, join(folder, 'link'))
    await putFile(join(folder, 'link'))
    expect(await readKey(store, key)).toBe('the samples')
    expect((await stat(join(directory, key))).ino).not.toBe((await stat(source)).ino)
  })
})

const diskOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.dev
const otherDisk = ['/dev/shm', import.meta.dirname].find(
  (path) => ![undefined, diskOf(tmpdir())].includes(diskOf(path)),
)

test.skipIf(otherDisk === undefined)(
  'a file on another disk is copied and removed (skipped if there is one disk only)',
  async () => {
    const other = await mkdtemp(join(otherDisk!, 'stemwork-moved-'))
    try {
      await writeFile(join(other, 'output.wav'), 'from afar')
      expect(await putFile(join(other, 'output.wav'))).toMatchObject({ bytes: 9, contentType: 'audio/wav' })
      expect(await readKey(store, key)).toBe('from afar')
      expect(await readdir(other)).toEqual([])
    } finally {
      await rm(other, { recursive: true })
    }
  },
)
