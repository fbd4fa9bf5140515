import { spawnSync } from 'node:child_process'
import { chmod, lstat, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { memoryBlobs } from '../../../src/adapters/blobs/memory/memory-blobs.js'
import { readUpload } from '../../../src/core/engine/dispatch/attempt/read-upload.js'
import { Scratch } from '../../../src/core/engine/dispatch/attempt/scratch.js'
import { fetchInput } from '../../../src/core/engine/fetch/fetch-input.js'
import { silentLogger } from '../../../src/core/engine/ports/logger.js'
import { loopback } from '../../fetch/loopback-server.js'
import { testEngine, textWorkflow } from '../harness.js'
import { folderOfEachTest } from '../../temporary-folder.js'

const directory = folderOfEachTest()

const host = hostname().replace(/[^\w-]/g, '')

/** The pid of a process that has ended. */
function deadPid(): number {
  return spawnSync(process.execPath, ['-e', '']).pid
}

test('no other local user can open the folders of running jobs or guess their names', async () => {
  const scratch = new Scratch(directory, silentLogger)
  const folder = await scratch.folder('job-1')
  const [root] = await readdir(directory)
  expect((await stat(join(directory, root!))).mode & 0o777).toBe(0o700)
  expect((await stat(folder)).mode & 0o777).toBe(0o700)
  expect(root).toMatch(/\.[A-Za-z0-9]{6}$/)
  const other = new Scratch(directory, silentLogger)
  await other.folder('job-1')
  expect(await readdir(directory)).toHaveLength(2)
  await scratch.close()
  await other.close()
  expect(await readdir(directory)).toEqual([])
})

test('nothing is written through a prepared link: the file behind it stays as it was', async () => {
  const victim = join(directory, 'victim')
  await writeFile(victim, 'mine')
  const path = join(directory, 'input')
  await symlink(victim, path)
  const server = await loopback((_, response) => response.end('theirs'))
  const { signal } = new AbortController()
  await expect(fetchInput(server.url, path, { signal, maxBytes: 100, policy: server.policy })).rejects.toMatchObject({
    code: 'EEXIST',
  })
  await symlink(victim, `${path}-2`)
  const blobs = memoryBlobs()
  await blobs.put(
    'uploads/a/1',
    (async function* () {
      yield Buffer.from('theirs')
    })(),
    { contentType: 'audio/wav' },
  )
  // An upload is read again after an outage of the blob store: what lies at its path is removed first, a link as such.
  await readUpload(blobs, 'uploads/a/1', `${path}-2`, { signal, maxBytes: 100 })
  expect((await lstat(`${path}-2`)).isFile()).toBe(true)
  expect(await readFile(victim, 'utf8')).toBe('mine')
})

test('a disk that one job filled counts as full for seconds, and not after the files of the job are gone', async () => {
  const scratch = new Scratch(directory, silentLogger)
  const folder = await scratch.folder('large')
  scratch.noteFull(3_600_000)
  expect(scratch.fullMs).toBeGreaterThan(0)
  expect(scratch.fullMs).toBeLessThanOrEqual(5000)
  await scratch.remove(folder)
  expect(scratch.fullMs).toBe(0)
  await scratch.close()
})

// Windows has no read-only folders.
test.skipIf(process.platform === 'win32')('what a program made read-only is removed, too', async () => {
  await chmod(directory, 0o777)
  // Root may write everywhere, so the process switches to another user once it has loaded its modules.
  const module = new URL('../../../build/core/engine/dispatch/attempt/scratch.js', import.meta.url)
  const script = `
    import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
    import { Scratch } from ${JSON.stringify(module)}
    if (process.getuid() === 0) process.seteuid(65_534)
    const scratch = new Scratch('.', { warn: ({ err }) => console.log(err.message) })
    async function madeReadOnly(name) {
      const folder = await scratch.folder(name)
      mkdirSync(folder + '/outer/inner', { recursive: true })
      writeFileSync(folder + '/outer/inner/file', 'text')
      for (const path of ['/outer/inner', '/outer']) chmodSync(folder + path, 0o555)
      return folder
    }
    const folder = await madeReadOnly('job-1')
    await scratch.remove(folder)
    console.log(existsSync(folder))
    await madeReadOnly('job-2')
    await scratch.close()
    // For the coverage, which is written at the end.
    if (process.getuid() === 0) process.seteuid(0)`
  const child = spawnSync(process.execPath, ['--input-type=module', '-e', script], { cwd: directory, encoding: 'utf8' })
  expect([child.stdout, child.stderr, await readdir(directory)]).toEqual(['false\n', '', []])
})

test('a start removes what dead processes of this machine left, and nothing else', async () => {
  const mine = new Scratch(directory, silentLogger)
  await mine.folder('job-1')
  const dead = deadPid()
  const gone = [
    `stemwork-scratch.${host}.${dead}.1700000000000.abcdef`,
    `stemwork-scratch.${host}.${process.pid}.1.abcdef`,
  ]
  const kept = [
    // Folders of live processes, of other machines or containers, and of other programs.
    `stemwork-scratch.${host}.${process.ppid}.1.abcdef`,
    `stemwork-scratch.other-host.${dead}.1.abcdef`,
    `stemwork-scratch.${host}.notes`,
    'somebody-elses',
  ]
  for (const name of [...gone, ...kept]) await mkdir(join(directory, name))
  await new Scratch(directory, silentLogger).removeLeftovers()
  const left = await readdir(directory)
  expect(left).toEqual(expect.arrayContaining(kept))
  expect(left).toHaveLength(kept.length + 1)
  await mine.close()
})

test('a folder that cannot be written keeps an engine from starting, and says which option names it', async () => {
  const file = join(directory, 'file')
  await writeFile(file, '')
  for (const scratchDirectory of [file, join(file, 'below')]) {
    const { engine } = testEngine(textWorkflow(), { scratchDirectory })
    await expect(engine.start()).rejects.toMatchObject({
      code: 'RUNNER_UNAVAILABLE',
      message: expect.stringContaining('scratchDirectory'),
    })
    await engine.close()
  }
})
