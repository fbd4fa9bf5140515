import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openEncoder } from '../../src/core/media/encode/encoder.js'
import { noise, sine, writeWav } from '../separation/tracks.js'
import { chromiumPath, openBrowser } from './browser.js'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 })

const hasFfmpeg = spawnSync('ffmpeg', ['-version']).error === undefined
const rate = 44_100
const seconds = 16

/** What the page's reading of a file is compared by. */
interface Report {
  frames: number
  /** Largest difference between a sample read in pieces and the same of the file decoded as a whole. */
  difference: number
  /** Of the loudest sample. */
  peak: number
  /** Bytes that one piece of two seconds from the middle took. */
  pieceBytes: number
}

describe.skipIf(!chromiumPath)('compressed stems in a browser (needs Chromium)', () => {
  let browser: Browser
  let page: Page
  let folder: string

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'stemwork-compressed-'))
    browser = await openBrowser()
    page = await browser.newPage()
    const { outputFiles } = await build({
      entryPoints: [fileURLToPath(new URL('../../src/console/pcm-source.ts', import.meta.url))],
      bundle: true,
      write: false,
      format: 'iife',
      globalName: 'pcm',
    })
    await page.addScriptTag({ content: outputFiles[0]!.text })
  })
  afterAll(async () => {
    await browser?.close()
    await rm(folder, { recursive: true, force: true })
  })

  test.skipIf(!hasFfmpeg)('mp3 of variable bit rate is read in pieces, too (needs ffmpeg)', async () => {
    const wav = join(folder, 'stem.wav')
    const path = join(folder, 'variable.mp3')
    // Silence, a tone and noise, so that frames differ in length.
    const tone = sine(seconds * rate, 440, rate, 0.4).map((sample, n) =>
      n % rate < rate / 4 ? 0 : (sample * n) / (seconds * rate),
    )
    const hiss = noise(seconds * rate).map((sample, n) => (n % (2 * rate) < rate ? 0 : sample))
    await writeWav(wav, [tone, hiss], rate, '16')
    execFileSync('ffmpeg', ['-loglevel', 'error', '-i', wav, '-q:a', '3', '-y', path])
    const file = await readFile(path)
    expect(file.includes('Xing')).toBe(true)
    const report = await page.evaluate<Report>(`(${readInPieces})("${file.toString('base64')}")`)
    expect(report.frames).toBe(seconds * rate)
    expect(report.peak).toBeGreaterThan(0.2)
    expect(report.difference).toBeLessThan(1e-4)
    expect(report.pieceBytes).toBeLessThan(file.byteLength / 4)
  })

  test.each(['flac', 'flac24', 'mp3'] as const)(
    '%s is read in pieces, each sample where it belongs',
    async (format) => {
      const path = join(folder, `stem.${format}`)
      const encoder = await openEncoder(path, { sampleRate: rate, channels: 2, format })
      const [tone, hiss] = [sine(seconds * rate, 440, rate, 0.4), noise(seconds * rate)]
      // It grows, so that a piece from another place is another piece.
      const rising = tone.map((sample, n) => (sample * n) / tone.length)
      await encoder.write([rising, hiss])
      await encoder.close()
      const file = await readFile(path)
      const report = await page.evaluate<Report>(`(${readInPieces})("${file.toString('base64')}")`)
      expect(report.frames).toBe(seconds * rate)
      expect(report.peak).toBeGreaterThan(0.2)
      // Decoders of MP3 start with other left-over bits than they would have in the middle of a file.
      expect(report.difference).toBeLessThan(format === 'mp3' ? 1e-4 : 1e-6)
      expect(report.pieceBytes).toBeLessThan(file.byteLength / 4)
    },
  )
})

/** Runs in the page, as text: the tests are compiled without a browser's types. */
const readInPieces = `async (base64) => {
  const file = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))
  let bytes = 0
  const read = async ({ start, end }) => {
    const part = file.slice(start, end === undefined ? undefined : end + 1)
    bytes += part.byteLength
    return { bytes: part.buffer, totalBytes: file.byteLength }
  }
  const { signal } = new AbortController()
  const source = await pcm.openPcm(read, signal)
  const whole = await new OfflineAudioContext(2, 1, source.sampleRate).decodeAudioData(file.slice().buffer)
  bytes = 0
  const piece = 2 * source.sampleRate
  await source.read(13 * source.sampleRate + 123, piece, signal)
  const pieceBytes = bytes
  let difference = 0
  let peak = 0
  // Backwards, so that no piece profits from the one before it.
  for (let from = Math.floor(source.frames / piece) * piece; from >= 0; from -= piece) {
    const planes = await source.read(from, piece, signal)
    for (const [channel, plane] of planes.entries()) {
      const truth = whole.getChannelData(channel)
      for (let n = 0; n < plane.length; n++) {
        difference = Math.max(difference, Math.abs(plane[n] - truth[from + n]))
        peak = Math.max(peak, Math.abs(plane[n]))
      }
    }
  }
  return { frames: source.frames, difference, peak, pieceBytes }
}`
