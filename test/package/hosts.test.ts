import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { packOnce, root, unpackInto } from './tarball.js'

// Each process runs the service, a separation and a client, some of them without a native runtime.
vi.setConfig({ testTimeout: 180_000 })

const folder = mkdtempSync(join(tmpdir(), 'stemwork-hosts-'))
const scratch = mkdtempSync(join(tmpdir(), 'stemwork-hosts-scratch-'))
afterAll(() => {
  for (const path of [folder, scratch]) rmSync(path, { recursive: true, force: true })
})

beforeAll(() => {
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { dependencies: object }
  unpackInto(folder, packOnce(), [...Object.keys(dependencies), 'onnxruntime-node'])
  cpSync(join(root, 'test/package/fixtures/hosts'), folder, { recursive: true })
  cpSync(join(root, 'test/package/fixtures/hosts/package.json'), join(folder, 'package.json'))
  chmodSync(folder, 0o755)
  chmodSync(scratch, 0o777)
})

interface Surroundings {
  env?: NodeJS.ProcessEnv
  uid?: number
}

function run(program: string, args: string[], { env = process.env, uid }: Surroundings = {}): string {
  const { stdout, stderr, error } = spawnSync(program, args, { cwd: folder, encoding: 'utf8', env, uid, gid: uid })
  return error ? String(error) : stdout + stderr
}

// `test/platforms` tests hosts on other runtimes.
const separated = 'SUCCEEDED by native: RIFF RIFF, then 404\n'
const isRoot = process.getuid?.() === 0
/** Containers may run under any user number. */
const nameless = 54_321

describe('a host', () => {
  test('can be in CommonJS, and require the package', () => {
    expect(run(process.execPath, ['commonjs.cjs'])).toBe(separated)
  })

  test('can be in a worker thread', () => {
    expect(run(process.execPath, ['thread.mjs'])).toBe(separated)
  })

  // Folders above the repository may be closed to other users, as /root is.
  const isOpen = isRoot && everyFolderOf(root).every((path) => statSync(path).mode & 0o001)
  const obstacle = isOpen ? '' : ' (skipped: needs root, and a checkout that others may read)'
  test.skipIf(!isOpen)(
    `can run as an unprivileged user without a name and HOME, in a folder that it cannot write to${obstacle}`,
    () => {
      const env = { PATH: process.env.PATH, TMPDIR: scratch }
      expect(run(process.execPath, ['module.mjs'], { env, uid: nameless })).toBe(separated)
    },
  )

  const canMount = isRoot && spawnSync('unshare', ['--mount', 'mount', '--bind', scratch, scratch]).status === 0
  const unmounted = canMount ? '' : ' (skipped: needs unshare)'
  test.skipIf(!canMount)(`can have a read-only file system, except for a folder of temporary files${unmounted}`, () => {
    const writable = join(scratch, 'tmp')
    mkdirSync(writable)
    const commands = [
      `mount -t tmpfs tmpfs ${writable}`,
      ...['/', folder].map((path) => `mount --bind ${path} ${path} && mount -o remount,ro,bind ${path}`),
      // The folder is read-only.
      `! touch ${folder}/written 2>/dev/null`,
      `cd ${folder} && exec ${process.execPath} module.mjs`,
    ]
    const env = { PATH: process.env.PATH, TMPDIR: writable }
    expect(run('unshare', ['--mount', 'sh', '-c', commands.join(' && ')], { env })).toBe(separated)
  })
})

function everyFolderOf(path: string): string[] {
  return path === dirname(path) ? [path] : [path, ...everyFolderOf(dirname(path))]
}
