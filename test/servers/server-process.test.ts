import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'esbuild'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'

let folder: string
let child: ChildProcess | undefined

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stemwork-server-process-'))
})

afterEach(async () => {
  child?.kill('SIGKILL')
  await rm(folder, { recursive: true, force: true })
})

/** A process that starts a server, which writes its process ID, and then runs `next`. */
async function startOwner(next: string): Promise<{ serverId: number; directory: string; ended: Promise<unknown> }> {
  const directory = join(folder, 'server')
  const built = join(folder, 'owner.mjs')
  await build({
    stdin: {
      contents: `
        import { mkdirSync } from 'node:fs'
        import { ServerProcess } from './server-process.js'
        mkdirSync(${JSON.stringify(directory)})
        const args = ['-c', 'echo $$ > id; exec sleep 600']
        const server = new ServerProcess({
          command: 'sh',
          args,
          directory: ${JSON.stringify(directory)},
          signal: 'KILL',
        })
        server.start()
        ${next}`,
      resolveDir: import.meta.dirname,
    },
    bundle: true,
    platform: 'node',
    format: 'esm',
    outfile: built,
  })
  child = spawn(process.execPath, [built], { stdio: ['pipe', 'ignore', 'inherit'] })
  const ended = once(child, 'exit')
  const id = await vi.waitFor(async () => {
    const text = await readFile(join(directory, 'id'), 'utf8')
    expect(text).toMatch(/^\d+\n$/)
    return Number(text)
  }, 20_000)
  return { serverId: id, directory, ended }
}

function isRunning(id: number): boolean {
  try {
    process.kill(id, 0)
    return true
  } catch {
    return false
  }
}

it.each([
  ['is killed', 'setInterval(() => {}, 1000)', () => child?.kill('SIGKILL')],
  ['exits', `process.stdin.on('data', () => process.exit())`, () => child?.stdin?.write('exit\n')],
])('ends the server and removes its files when the process %s', async (_, script, end) => {
  const { serverId, directory, ended } = await startOwner(script)
  expect(isRunning(serverId)).toBe(true)
  end()
  await ended
  await vi.waitFor(() => {
    expect(isRunning(serverId)).toBe(false)
    expect(existsSync(directory)).toBe(false)
  }, 20_000)
})

it('keeps the files of a server that is only killed', async () => {
  const { serverId, directory } = await startOwner(`process.stdin.on('data', () => server.kill())`)
  child?.stdin?.write('kill\n')
  await vi.waitFor(() => expect(isRunning(serverId)).toBe(false), 20_000)
  expect(existsSync(join(directory, 'id'))).toBe(true)
})
