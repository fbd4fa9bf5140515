import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { embeddedModelFolder } from '../../src/core/models/load-model.js'
import { temporaryFolder } from '../temporary-folder.js'

const root = fileURLToPath(new URL('../../', import.meta.url))
const song = join(root, 'test/fixtures/audio/stereo.mp3')
const network = join(embeddedModelFolder, 'model.onnx')

const folder = temporaryFolder()
let home: string
beforeEach(async () => {
  home = join(folder, `home-${Math.random()}`)
  for (const name of ['', 'tmp', 'work']) await mkdir(join(home, name))
})

/**
 * Files that a program leaves in the home and temporary folders when it runs with a clean environment: variables of CI
 * services would turn telemetry off.
 */
async function leftBy(args: string[], more: Record<string, string> = {}): Promise<string[]> {
  const environment = { PATH: process.env.PATH, HOME: home, TMPDIR: join(home, 'tmp'), STEMWORK_RUNTIME: 'native' }
  const child = spawn(process.execPath, args, {
    cwd: join(home, 'work'),
    env: { ...environment, ...more },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  child.stderr.on('data', (data: Buffer) => (said += data))
  expect((await once(child, 'close'))[0], said).toBe(0)
  return (await readdir(home, { recursive: true })).filter((path) => !/^(tmp|work\b.*)$/.test(path))
}

const programs = {
  session: `const { openSession } = await import('ROOT/build/core/models/session/session.js')
    await openSession('${network}', { runtime: 'native' })`,
  thread: `const { openNetworkThread } = await import('ROOT/build/core/models/session/threaded-network.js')
    await openNetworkThread('${network}', { runtime: 'native' })`,
  live: `const { separateStream } = await import('ROOT/dist/live.js')
    async function* source() {
      for (;;) yield [new Float32Array(4410).fill(0.1), new Float32Array(4410).fill(0.1)]
    }
    for await (const _ of separateStream(source(), { sampleRate: 44100, runtime: 'native' })) break`,
}
const fileOf = (name: keyof typeof programs) => join(folder, `${name}.mjs`)
beforeAll(async () => {
  for (const [name, code] of Object.entries(programs))
    await writeFile(join(folder, `${name}.mjs`), code.replaceAll('ROOT', root))
})

// Telemetry begins with a log in the temporary folder, and with a device identifier and an event database in the home
// folder.
test.each([
  ['of a command', [join(root, 'dist/cli/main.js'), 'separate', song, '--output', 'stems']],
  ['in the host', [fileOf('session')]],
  ['in a thread of the host', [fileOf('thread')]],
  ['in a thread that separates live', [fileOf('live')]],
])('the runtime %s reports nothing to its maker', async (_, args) => {
  expect(await leftBy(args)).toEqual([])
})

test('whoever wants its telemetry can have it', async () => {
  const left = await leftBy([fileOf('session')], { ORT_DISABLE_TELEMETRY: '0' })
  expect(left.some((path) => path.includes('Microsoft'))).toBe(true)
})
