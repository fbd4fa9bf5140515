import { spawnSync } from 'node:child_process'
import {
  appendFile,
  type FileHandle,
  open,
  readdir,
  readFile,
  readlink,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { keysUnder, sourceOf } from '../../../src/contract/blob-samples.js'
import { fsBlobs } from '../../../src/adapters/blobs/fs/index.js'
import type { BlobStore } from '../../../src/core/engine/ports/blob-store.js'
import { folderOfEachTest } from '../../temporary-folder.js'

const key = 'results/job/1/vocals.wav'
const directory = folderOfEachTest()
let store: BlobStore

beforeEach(() => void (store = fsBlobs({ directory })))

/** The prototype of all open files. */
async function handlePrototype(): Promise<FileHandle> {
  const file = await open(directory)
  await file.close()
  return Object.getPrototypeOf(file) as FileHandle
}

describe('a blob folder', () => {
  test('holds a blob at the path of its key, its bytes first', async () => {
    await store.put(key, sourceOf('RIFF and so on'))
    expect((await readFile(join(directory, key), 'utf8')).startsWith('RIFF and so on')).toBe(true)
  })

  test.skipIf(process.platform === 'win32')(
    'is readable for its owner alone, whatever is made in it (needs POSIX modes)',
    async () => {
      await store.put(key, sourceOf('x'))
      const paths = key.split('/').map((_, index, parts) => join(directory, ...parts.slice(0, index + 1)))
      const modes = await Promise.all(paths.map(async (path) => ((await stat(path)).mode & 0o777).toString(8)))
      expect(modes).toEqual(['700', '700', '700', '600'])
    },
  )

  test('stores a small blob with one write, and a large one block by block', async () => {
    const write = vi.spyOn(await handlePrototype(), 'write')
    const pieces = (count: number) => sourceOf(...Array.from({ length: count }, () => 'x'.repeat(1000)))
    try {
      expect(await store.put(key, pieces(20))).toMatchObject({ bytes: 20_000 })
      expect(write).toHaveBeenCalledTimes(1)
      expect(await store.put(key, pieces(200))).toMatchObject({ bytes: 200_000 })
      expect(write).toHaveBeenCalledTimes(1 + 4)
    } finally {
      write.mockRestore()
    }
  })

  describe.each(['put', 'putFile'] as const)('%s', (way) => {
    const write = async () => {
      const source = join(directory, 'made.wav')
      await writeFile(source, 'RIFF and so on')
      return way === 'put' ? await store.put(key, sourceOf('x')) : await store.putFile!(key, source)
    }

    test.each([
      ['stat', 'EIO', /EIO/],
      ['sync', 'EIO', /EIO.*Check the disk/],
      ['sync', 'Unknown system error -122', /quota is used up/],
    ] as const)('names a failed %s (%s) as a failure of the store', async (call, code, said) => {
      const handle = await handlePrototype()
      const failed = vi.spyOn(handle, call).mockImplementation(async () => {
        failed.mockRestore()
        throw Object.assign(new Error(`${code}: ${call}`), { code, syscall: call })
      })
      try {
        await expect(write()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', message: expect.stringMatching(said) })
      } finally {
        failed.mockRestore()
      }
      expect(await write()).toMatchObject({ key })
    })
  })

  test.skipIf(process.platform !== 'linux')('closes a file that it cannot look at (needs /proc)', async () => {
    await store.put(key, sourceOf('x'))
    const another = fsBlobs({ directory })
    const failed = vi.spyOn(await handlePrototype(), 'stat').mockRejectedValue(new Error('ESTALE'))
    try {
      await expect(another.stat(key)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    } finally {
      failed.mockRestore()
    }
    const open = await Promise.all(
      (await readdir('/proc/self/fd')).map((number) => readlink(`/proc/self/fd/${number}`).catch(() => '')),
    )
    expect(open.filter((path) => path.startsWith(directory))).toEqual([])
  })

  // A disk that takes minutes for a write cannot be simulated here, so the system calls are held up instead.
  test.for(['write', 'sync'] as const)('answers reads while a busy disk holds up every %s', async (call) => {
    await store.put(key, sourceOf('x'))
    const handle = await handlePrototype()
    const release: (() => void)[] = []
    const original = handle[call] as (...given: unknown[]) => Promise<never>
    const held = vi.spyOn(handle, call).mockImplementation(async function (this: FileHandle, ...given: unknown[]) {
      await new Promise<void>((resolve) => release.push(resolve))
      return await original.apply(this, given)
    })
    try {
      const puts = Array.from({ length: 12 }, (_, n) => store.put(`uploads/app/ticket-${n}`, sourceOf('x')))
      await expect.poll(() => release.length).toBe(2)
      for (let n = 0; n < 5; n++) expect(await store.stat(key)).toMatchObject({ bytes: 1 })
      // Half of the four threads that a process has for files.
      expect(release.length).toBe(2)
      held.mockRestore()
      for (const go of release) go()
      await Promise.all(puts)
    } finally {
      held.mockRestore()
    }
  })

  test("reads the footer of another process's file once, and again only after it was replaced or changed", async () => {
    const another = fsBlobs({ directory })
    await another.put(key, sourceOf('first'))
    await another.put('results/job/1/other.wav', sourceOf('x'))
    const file = await open(join(directory, key))
    const read = vi.spyOn(Object.getPrototypeOf(file) as FileHandle, 'read')
    await file.close()
    try {
      expect(await keysUnder(store, 'results/')).toHaveLength(2)
      expect(read).toHaveBeenCalledTimes(2)
      expect(await keysUnder(store, 'results/')).toHaveLength(2)
      expect(await store.stat(key)).toMatchObject({ bytes: 5 })
      await (await store.get(key, { range: { start: 5, end: 5 } }))?.body[Symbol.asyncIterator]().return?.()
      expect(read).toHaveBeenCalledTimes(2)
      const replaced = await another.put(key, sourceOf('other'))
      expect(await store.stat(key)).toMatchObject({ bytes: 5, etag: replaced.etag })
      expect(read).toHaveBeenCalledTimes(3)
      const { etag } = await store.put(key, sourceOf('third'))
      expect(await store.stat(key)).toMatchObject({ bytes: 5, etag })
      // The store wrote this version itself.
      expect(read).toHaveBeenCalledTimes(3)
      await appendFile(join(directory, key), 'and more')
      await expect(store.stat(key)).rejects.toThrow('changed or damaged')
    } finally {
      read.mockRestore()
    }
  })

  describe('reads a small blob', () => {
    /** The calls that have begun, while calls that inspect the open file are held up. */
    async function begunOf(get: () => Promise<unknown>): Promise<string[]> {
      const handle = await handlePrototype()
      const begun: string[] = []
      const release: (() => void)[] = []
      const [look, read] = [handle.stat, handle.read] as ((...given: unknown[]) => Promise<never>)[]
      const spies = [
        vi.spyOn(handle, 'stat').mockImplementation(async function (this: FileHandle) {
          begun.push('stat')
          await new Promise<void>((resolve) => release.push(resolve))
          return await look!.apply(this)
        }),
        vi.spyOn(handle, 'read').mockImplementation(async function (this: FileHandle, ...given: unknown[]) {
          begun.push('read')
          return await read!.apply(this, given)
        }),
      ]
      try {
        const got = get()
        await vi.waitFor(() => expect(release).toHaveLength(1))
        await new Promise((resolve) => setTimeout(resolve, 10))
        const atOnce = [...begun]
        release[0]!()
        await got
        return atOnce
      } finally {
        for (const spy of spies) spy.mockRestore()
      }
    }

    const textOf = async () => text((await store.get(key))!.body)

    test.each(['put', 'putFile'] as const)('that it has written (%s) while it looks at it', async (way) => {
      if (way === 'put') await store.put(key, sourceOf('song'))
      else {
        const path = join(directory, '..', `stemwork-source-${process.pid}`)
        await writeFile(path, 'song')
        await store.putFile!(key, path)
      }
      expect(await begunOf(async () => expect(await textOf()).toBe('song'))).toEqual(['stat', 'read'])
    })

    test('but not a large one, of which it would hold much', async () => {
      await store.put(key, sourceOf('x'.repeat(70_000)))
      expect(await begunOf(async () => expect(await textOf()).toHaveLength(70_000))).toEqual(['stat'])
    })

    test('again if another process has replaced it', async () => {
      await store.put(key, sourceOf('a longer first song'))
      await fsBlobs({ directory }).put(key, sourceOf('second'))
      expect(await begunOf(async () => expect(await textOf()).toBe('second'))).toEqual(['stat', 'read'])
    })
  })

  test('keeps no empty folders of blobs that are gone', async () => {
    await store.put(key, sourceOf('x'))
    await store.put('uploads/app/ticket', sourceOf('x'))
    await store.delete('uploads/app/ticket')
    await store.deletePrefix('results/job/')
    expect(await readdir(directory)).toEqual([])
    await expect(store.put(key, failing())).rejects.toThrow('lost')
    expect(await readdir(directory)).toEqual([])
  })

  test('takes puts into folders that are being emptied at the same time', async () => {
    await Promise.all(
      Array.from({ length: 60 }, async (_, n) => {
        await store.put(`uploads/app/ticket-${n}`, sourceOf(`body ${n}`))
        await store.delete(`uploads/app/ticket-${n}`)
      }),
    )
    expect(await readdir(directory)).toEqual([])
  })

  test('distinguishes a damaged file from a missing one, and lists the others', async () => {
    await store.put(key, sourceOf('0123456789'))
    await store.put('results/job/1/whole.wav', sourceOf('whole'))
    await writeFile(join(directory, 'results', 'job', 'readme.txt'), 'put here by somebody')
    for (const damage of [
      () => appendFile(join(directory, key), 'x'),
      () => truncate(join(directory, key), 5),
      () => truncate(join(directory, key), 0),
    ]) {
      await damage()
      await expect(store.get(key)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
      await expect(store.stat(key)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    }
    expect(await keysUnder(store, 'results/')).toEqual(['results/job/1/whole.wav'])
    await store.delete(key)
    expect(await store.stat(key)).toBeUndefined()
  })

  test('neither lists nor follows anything that is not a regular file', async () => {
    await store.put(key, sourceOf('x'))
    await symlink('/etc', join(directory, 'results', 'etc'))
    expect(await keysUnder(store, 'results/')).toEqual([key])
  })

  test('serves many puts and reads of two stores on one folder', async () => {
    const other = fsBlobs({ directory })
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, (_, n) =>
        (n % 2 ? store : other).put('uploads/app/one', sourceOf(`writer ${n}`), { ifAbsent: true }),
      ),
    )
    expect(outcomes.filter((outcome) => outcome.status === 'fulfilled').length).toBe(1)
    expect(await other.stat('uploads/app/one')).toEqual(await store.stat('uploads/app/one'))
  })

  test('does not clean up what it is writing, however old', async () => {
    let finish = () => {}
    const finished = new Promise<void>((resolve) => (finish = resolve))
    const put = store.put(key, waiting(finished))
    expect(await store.cleanUp?.(Infinity)).toBe(0)
    finish()
    expect((await put).bytes).toBe(10)
  })

  test('refuses a content type that is too long before it reads the source', async () => {
    await expect(store.put(key, failing(), { contentType: 'x'.repeat(2000) })).rejects.toMatchObject({
      code: 'INVALID_PARAMS',
    })
    expect(await readdir(directory)).toEqual([])
  })

  test.skipIf(process.platform !== 'linux')(
    'closes the file of a body that is discarded, whether unread or partly read',
    async () => {
      await store.put(key, sourceOf('x'.repeat(1_000_000)))
      const openFiles = async () => (await readdir('/proc/self/fd')).length
      const before = await openFiles()
      for (let n = 0; n < 50; n++) {
        const found = await store.get(key)
        if (!found) return expect.unreachable()
        const stream = Readable.from(found.body)
        const closed = new Promise((resolve) => stream.once('close', resolve))
        if (n % 2) stream.destroy()
        else stream.once('data', () => stream.destroy())
        await closed
      }
      expect((await openFiles()) - before).toBeLessThan(5)
    },
  )

  test.skipIf(process.platform !== 'linux' || !canLimitFileSize())(
    'fails with a retryable error when the disk is full, and leaves nothing',
    () => {
      // The limit of the shell is the portable substitute for a full disk: the write comes back short or with an error
      // in either case.
      const entry = new URL('../../../dist/adapters/blobs/fs/index.js', import.meta.url).href
      const script = `
      import { fsBlobs } from ${JSON.stringify(entry)}
      process.on('SIGXFSZ', () => {})
      const store = fsBlobs({ directory: ${JSON.stringify(directory)} })
      const source = (async function* () { for (let n = 0; n < 64; n++) yield Buffer.alloc(65536) })()
      const error = await store.put('results/job/1/a', source).catch((error) => error)
      const left = await store.stat('results/job/1/a') ?? null
      console.log(JSON.stringify({ code: error.code, retryable: error.retryable, left }))`
      const { stdout, stderr } = spawnSync(
        'sh',
        ['-c', 'ulimit -f 1000; exec "$0" --input-type=module -e "$1"', process.execPath, script],
        { encoding: 'utf8' },
      )
      expect(JSON.parse(stdout || JSON.stringify(stderr))).toEqual({
        code: 'STORE_UNAVAILABLE',
        retryable: true,
        left: null,
      })
    },
  )
})

function canLimitFileSize(): boolean {
  return spawnSync('sh', ['-c', 'ulimit -f 1000']).status === 0
}

async function* failing(): AsyncGenerator<Uint8Array, void, void> {
  yield Buffer.from('some')
  throw new Error('lost')
}

async function* waiting(until: Promise<void>): AsyncGenerator<Uint8Array, void, void> {
  yield Buffer.from('first')
  await until
  yield Buffer.from('later')
}
