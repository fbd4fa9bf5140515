import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { hasProgram } from '../servers/found-server.js'
import { chromiumPath } from './browser.js'

const script = fileURLToPath(new URL('../../scripts/recording.mjs', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'stemwork-recorded-'))
afterAll(() => rmSync(folder, { recursive: true }))

test.skipIf(!chromiumPath || !hasProgram('ffmpeg'))(
  'the moving picture of the README and its sounds are recorded from the console as it is (needs Chromium and ffmpeg)',
  () => {
    const env = { ...process.env, CHROMIUM_PATH: chromiumPath }
    const { status, stderr } = spawnSync(process.execPath, [script, folder], { encoding: 'utf8', env })
    expect(status, stderr).toBe(0)
    const picture = readFileSync(join(folder, 'demo.webp'))
    expect(picture.length).toBeLessThan(400_000)
    expect(picture.toString('latin1').split('ANMF').length - 1).toBeGreaterThan(15)
    for (const sound of ['song.mp3', 'song-without-voice.mp3'])
      expect(statSync(join(folder, sound)).size).toBeGreaterThan(100_000)
  },
  600_000,
)
