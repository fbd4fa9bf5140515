import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { hasProgram } from '../servers/found-server.js'
import { chromiumPath } from './browser.js'

const script = (name: string) => fileURLToPath(new URL(`../../scripts/${name}.mjs`, import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'stemwork-recorded-'))
afterAll(() => rmSync(folder, { recursive: true }))

function record(name: string): void {
  const env = { ...process.env, CHROMIUM_PATH: chromiumPath }
  const { status, stderr } = spawnSync(process.execPath, [script(name), folder], { encoding: 'utf8', env })
  expect(status, stderr).toBe(0)
}

test.skipIf(!chromiumPath || !hasProgram('ffmpeg'))(
  'the moving picture of the README and its sounds are recorded from the console as it is (needs Chromium and ffmpeg)',
  () => {
    record('recording')
    const picture = readFileSync(join(folder, 'demo.webp'))
    expect(picture.length).toBeLessThan(400_000)
    expect(picture.toString('latin1').split('ANMF').length - 1).toBeGreaterThan(15)
    for (const sound of ['song.mp3', 'song-without-voice.mp3'])
      expect(statSync(join(folder, sound)).size).toBeGreaterThan(100_000)
  },
  600_000,
)

test.skipIf(!chromiumPath)(
  'the pictures of the pages for musicians and operators are of the pages as they are (needs Chromium)',
  () => {
    record('screenshots')
    for (const picture of ['console.png', 'operator.png'])
      expect(statSync(join(folder, picture)).size).toBeGreaterThan(30_000)
  },
  600_000,
)
