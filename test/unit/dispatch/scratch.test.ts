import { spawnSync } from 'node:child_process'
import files, { constants, mkdir, rm, stat, writeFile } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { Scratch } from '../../../src/core/engine/dispatch/attempt/scratch.js'
import { silentLogger } from '../../../src/core/engine/ports/logger.js'
import { recordingLogger } from '../../engine/harness.js'
import { folderOfEachTest } from '../../temporary-folder.js'

const real = { access: files.access, rm: files.rm, statfs: files.statfs }
const directory = folderOfEachTest()
afterEach(() => inPlaceOf(real))

/** Root may do everything: these functions refuse what the system refuses to other users. */
function inPlaceOf(functions: Partial<typeof real>): void {
  Object.assign(files, functions)
  syncBuiltinESMExports()
}

const refusal = (code: string) => Object.assign(new Error('refused'), { code })

test('the folder is created if it does not exist, and must allow folders to be created in it', async () => {
  const below = join(directory, 'some', 'folder')
  const asked: unknown[] = []
  inPlaceOf({ access: async (...args) => void asked.push(args) })
  await new Scratch(below, silentLogger).check()
  expect((await stat(below)).isDirectory()).toBe(true)
  expect(asked).toEqual([[below, constants.W_OK | constants.X_OK]])
})

test.each(['EACCES', 'EPERM', 'EROFS'])(
  'of a folder that is refused with %s, the operator has to name another',
  async (code) => {
    inPlaceOf({ access: () => Promise.reject(refusal(code)) })
    const failure = { code: 'RUNNER_UNAVAILABLE', message: expect.stringContaining(code), cause: { code } }
    await expect(new Scratch(directory, silentLogger).check()).rejects.toMatchObject(failure)
    await expect(new Scratch(directory, silentLogger).folder('job')).rejects.toMatchObject(failure)
  },
)

test('any other failure is passed on unchanged', async () => {
  inPlaceOf({ access: () => Promise.reject(refusal('EIO')) })
  await expect(new Scratch(directory, silentLogger).check()).rejects.toMatchObject({ code: 'EIO' })
})

test('folders of one process are kept together until it is closed', async () => {
  const scratch = new Scratch(directory, silentLogger)
  expect(await scratch.pathOf('one')).toBeUndefined()
  const [one, two] = [await scratch.folder('one'), await scratch.folder('two')]
  expect([dirname(one), await scratch.pathOf('one')]).toEqual([dirname(two), one])
  // Another program may have removed the folder.
  await rm(dirname(one), { recursive: true })
  await scratch.close()
  expect(await scratch.pathOf('one')).toBeUndefined()
  expect(dirname(await scratch.folder('one'))).not.toBe(dirname(one))
})

test('a folder can be created once its parent exists; until then there is nothing to find or remove', async () => {
  const place = join(directory, 'place')
  await writeFile(place, '')
  const scratch = new Scratch(place, silentLogger)
  for (const then of [() => scratch.close(), () => scratch.pathOf('job')]) {
    const failing = scratch.folder('job')
    failing.catch(() => {})
    expect(await then()).toBeUndefined()
    await expect(failing).rejects.toMatchObject({ code: 'RUNNER_UNAVAILABLE' })
  }
  await rm(place)
  expect(dirname(dirname(await scratch.folder('job')))).toBe(place)
})

test('leftovers that cannot be removed are logged', async () => {
  const { pid } = spawnSync(process.execPath, ['-e', ''])
  const folder = `stemwork-scratch.${hostname().replace(/[^\w-]/g, '')}.${pid}.1.abcdef`
  await mkdir(join(directory, folder))
  const { logger, lines } = recordingLogger()
  inPlaceOf({ rm: () => Promise.reject(refusal('EBUSY')) })
  await new Scratch(directory, logger).removeLeftovers()
  expect(lines).toMatchObject([{ level: 'warn', fields: { folder } }])
})

const mebibyte = 1024 ** 2

/** A disk with this many bytes that are free, in blocks of 4 bytes. */
function diskWith(freeBytes: number, blocks = 1e9): void {
  inPlaceOf({ statfs: (async () => ({ bavail: freeBytes / 4, bsize: 4, blocks })) as unknown as typeof files.statfs })
}

test('the operator is warned of a disk with less than 256 MiB, if the file system reports its size', async () => {
  const scratch = new Scratch(directory, silentLogger)
  diskWith(256 * mebibyte)
  expect(await scratch.warning()).toBeUndefined()
  diskWith(256 * mebibyte - 4)
  expect(await scratch.warning()).toContain('has only 255 MiB free')
  diskWith(0, 0)
  expect(await scratch.warning()).toBeUndefined()
  diskWith(0, 1)
  expect(await scratch.warning()).toContain('has only 0 MiB free')
  inPlaceOf({ statfs: (): Promise<never> => Promise.reject(refusal('ENOSYS')) })
  expect(await scratch.warning()).toBeUndefined()
})

test('a disk that was found full counts as full while it is, also once an attempt has removed its files', async () => {
  const scratch = new Scratch(directory, silentLogger)
  scratch.noteFull(60_000)
  diskWith(0)
  await scratch.remove(await scratch.folder('small'))
  expect(scratch.fullMs).toBeGreaterThan(0)
  diskWith(256 * mebibyte)
  await scratch.remove(await scratch.folder('large'))
  expect(scratch.fullMs).toBe(0)
})

test('files of an attempt that cannot be removed are logged, and go with the folder of the process', async () => {
  const { logger, lines } = recordingLogger()
  const scratch = new Scratch(directory, logger)
  const folder = await scratch.folder('job')
  inPlaceOf({ rm: () => Promise.reject(refusal('EBUSY')) })
  await scratch.remove(folder)
  expect(lines).toMatchObject([{ level: 'warn', fields: { folder, err: { code: 'EBUSY' } } }])
  inPlaceOf(real)
  await scratch.close()
  await expect(stat(folder)).rejects.toMatchObject({ code: 'ENOENT' })
})
