import { fork } from 'node:child_process'
import { open, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { adtsFrames, writeM4a } from './m4a-file.js'
import { fixture } from './test-signal.js'
import { noise } from '../separation/tracks.js'
import { wavFile } from '../separation/wav-file.js'
import { temporaryFolder } from '../temporary-folder.js'

const folder = temporaryFolder()

interface Report {
  seconds: number
  peakBytes: number
}

/** Decodes in a separate process, as the separation does; resolves with its report and all its output. */
function decode(path: string, sampleRate: number): Promise<Report & { output: string; exitCode: number | null }> {
  const child = fork(new URL('decode-child.mjs', import.meta.url), [path, String(sampleRate)], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    execArgv: [],
  })
  let output = ''
  let report: Report = { seconds: 0, peakBytes: 0 }
  child.stdout?.on('data', (data) => (output += data))
  child.stderr?.on('data', (data) => (output += data))
  child.on('message', (message) => (report = message as Report))
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (exitCode) => resolve({ ...report, output, exitCode }))
  })
}

/** Bytes past the end are zeros that take no disk space: silence. */
async function writeLongWav(path: string, seconds: number): Promise<void> {
  const bytes = 44_100 * 4 * seconds
  const header = wavFile({ tag: 1, bits: 16, data: Buffer.alloc(0), riffBytes: bytes + 36, dataBytes: bytes })
  const file = await open(path, 'w')
  await file.write(header)
  await file.truncate(header.length + bytes)
  await file.close()
}

async function writeLongM4a(path: string, seconds: number): Promise<void> {
  const frames = adtsFrames(await readFile(fixture('stereo.aac')))
  const file = await open(path, 'w')
  await writeM4a(file, frames, Math.round((seconds * 44_100) / 1024 / frames.length))
  await file.close()
}

const mostGrowth = 1.2

describe('memory', () => {
  it.each([
    ['WAV is decoded and resampled', writeLongWav, 32_000],
    ['M4A with its index at the end is decoded', writeLongM4a, 44_100],
  ])(
    'sixteen minutes of %s take no more memory than four',
    async (_, write, sampleRate) => {
      const path = join(folder, 'long')
      // V8's heap grows during the first minutes, by a third from Node.js 24 on.
      await write(path, 4 * 60)
      const short = await decode(path, sampleRate)
      await write(path, 16 * 60)
      let long = await decode(path, sampleRate)
      // Late garbage collection on a busy machine is not growth: the smaller of two peaks is what the decoder needs.
      if (long.peakBytes / short.peakBytes >= mostGrowth) {
        const again = await decode(path, sampleRate)
        if (again.peakBytes < long.peakBytes) long = again
      }
      expect({ short: short.exitCode, long: long.exitCode, output: short.output + long.output }).toEqual({
        short: 0,
        long: 0,
        output: '',
      })
      expect(short.seconds).toBeGreaterThan(4 * 60 - 2)
      expect(long.seconds / short.seconds).toBeGreaterThan(3.9)
      expect(long.peakBytes / short.peakBytes).toBeLessThan(mostGrowth)
    },
    240_000,
  )
})

describe('silence of the decoders', () => {
  it('a damaged MP3 is decoded without a word on stdout or stderr', async () => {
    const bytes = await readFile(fixture('stereo.mp2'))
    // Bytes this random make the decoder print several lines.
    noise(8000).forEach((value, index) => (bytes[8000 + index] = (value + 0.5) * 256))
    await writeFile(join(folder, 'damaged.mp3'), bytes)
    const { seconds, output, exitCode } = await decode(join(folder, 'damaged.mp3'), 44_100)
    expect({ output, exitCode }).toEqual({ output: '', exitCode: 0 })
    expect(seconds).toBeGreaterThan(0.1)
  })
})
