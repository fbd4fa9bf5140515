import { spawnSync } from 'node:child_process'
import { mkdir, readdir, stat } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { makeProcessFolder, removeDeadFolders } from '../../../src/core/engine/dispatch/attempt/process-folder.js'
import { silentLogger } from '../../../src/core/engine/ports/logger.js'
import { folderOfEachTest } from '../../temporary-folder.js'

const host = hostname().replace(/[^\w-]/g, '')
const directory = folderOfEachTest()

afterEach(() => void vi.restoreAllMocks())

test('a folder is named after its process and is its own each time', async () => {
  const [one, two] = [await makeProcessFolder(directory, 'work'), await makeProcessFolder(directory, 'work')]
  const name = new RegExp(`^work\\.${host}\\.${process.pid}\\.${Math.trunc(performance.timeOrigin)}\\.\\w{6}$`)
  const names = await readdir(directory)
  expect(names).toHaveLength(2)
  for (const each of names) expect(each).toMatch(name)
  expect(new Set([one, two])).toEqual(new Set(names.map((each) => join(directory, each))))
  expect((await stat(one)).isDirectory()).toBe(true)
})

test('folders of dead processes with the same prefix are removed with their files, and no others', async () => {
  const { pid } = spawnSync(process.execPath, ['-e', ''])
  const own = await makeProcessFolder(directory, 'work')
  const dead = [`work.${host}.${pid}.1.abcdef`, `work.${host}.${process.pid}.1.abcdef`]
  const others = [
    `play.${host}.${pid}.1.abcdef`,
    `work.${host}.${process.ppid}.1.abcdef`,
    `work.another.${pid}.1.abcdef`,
    `work.${host}.${pid}.1.abcdef.gz`,
    `before-work.${host}.${pid}.1.abcdef`,
    `work.${host}.notes`,
    `work${host}.${pid}.1.abcdef`,
  ]
  for (const name of [...dead, ...others]) await mkdir(join(directory, name, 'with', 'folders'), { recursive: true })
  await removeDeadFolders(directory, 'work', silentLogger)
  expect((await readdir(directory)).map((name) => join(directory, name)).sort()).toEqual(
    [own, ...others.map((name) => join(directory, name))].sort(),
  )
})

test('a process of another user counts as alive', async () => {
  const name = `work.${host}.12345678.1.abcdef`
  await mkdir(join(directory, name))
  const kill = vi.spyOn(process, 'kill').mockImplementation(() => {
    throw Object.assign(new Error('not permitted'), { code: 'EPERM' })
  })
  await removeDeadFolders(directory, 'work', silentLogger)
  expect(kill.mock.calls).toEqual([[12_345_678, 0]])
  expect(await readdir(directory)).toEqual([name])
  kill.mockImplementation(() => {
    throw Object.assign(new Error('no such process'), { code: 'ESRCH' })
  })
  await removeDeadFolders(directory, 'work', silentLogger)
  expect(await readdir(directory)).toEqual([])
})

test('without a folder, nothing has to be removed', async () => {
  await expect(removeDeadFolders(join(directory, 'none'), 'work', silentLogger)).resolves.toBeUndefined()
})
