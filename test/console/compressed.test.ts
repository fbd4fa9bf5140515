import { execFileSync, spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { openAudio } from '../../src/core/media/decode/open-audio.js'
import { openEncoder } from '../../src/core/media/encode/encoder.js'
import { noise, sine, writeWav } from '../separation/tracks.js'
import { chromiumPath, openBrowser } from './browser.js'
import { temporaryFolder } from '../temporary-folder.js'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 })

const hasFfmpeg = spawnSync('ffmpeg', ['-version']).error === undefined
const rate = 44_100
const seconds = 16

/** Measurements of how the page reads a file. */
interface Report {
  frames: number
  /** Largest difference between samples read in pieces and those of the file decoded as a whole. */
  difference: number
  /** Level of the loudest sample. */
  peak: number
  /** Bytes read for one piece of two seconds from the middle. */
  pieceBytes: number
}

describe.skipIf(!chromiumPath)('compressed stems in a browser (needs Chromium)', () => {
  let browser: Browser
  let page: Page
  const folder = temporaryFolder()

  beforeAll(async () => {
    const tone = sine(seconds * rate, 440, rate, 0.4).map((sample, n) => (sample * n) / (seconds * rate))
    const hiss = noise(seconds * rate).map((sample) => sample / 2)
    await writeWav(join(folder, 'song.wav'), [tone, hiss], rate, '16')
    browser = await openBrowser()
    page = await browser.newPage()
    const { outputFiles } = await build({
      entryPoints: [fileURLToPath(new URL('../../src/console/sources/pcm-source.ts', import.meta.url))],
      bundle: true,
      write: false,
      format: 'iife',
      globalName: 'pcm',
    })
    await page.addScriptTag({ content: outputFiles[0]!.text })
  })
  afterAll(async () => {
    await browser?.close()
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

  const lame = ['-c:a', 'libmp3lame']
  const bare = ['-write_xing', '0', '-id3v2_version', '0']
  const aac = ['-c:a', 'aac', '-aac_coder', 'fast', '-aac_pns', '0']
  test.skipIf(!hasFfmpeg).each([
    ['constant.mp3', [...lame, '-b:a', '192k', ...bare]],
    ['variable.mp3', [...lame, '-q:a', '2', ...bare]],
    ['slow.mp3', [...lame, '-ar', '22050', '-b:a', '64k']],
    ['index-last.m4a', aac],
    ['index-first.m4a', [...aac, '-movflags', '+faststart']],
    ['fragments.m4a', [...aac, '-movflags', '+frag_keyframe+empty_moov', '-frag_duration', '2000000']],
    ['vorbis.ogg', ['-c:a', 'libvorbis', '-q:a', '4']],
    ['opus.ogg', ['-c:a', 'libopus', '-b:a', '160k']],
  ])('%s is heard from the file as the service hears it, piece by piece (needs ffmpeg)', async (name, options) => {
    const path = join(folder, name)
    execFileSync('ffmpeg', ['-loglevel', 'error', '-i', join(folder, 'song.wav'), ...options, '-y', path])
    const served = await openAudio(path)
    const planes: Buffer[][] = [[], []]
    for await (const { channels } of served.blocks)
      for (const [channel, samples] of channels.entries()) planes[channel]?.push(Buffer.from(samples.slice().buffer))
    const truth = planes.map((parts) => Buffer.concat(parts).toString('base64'))
    const file = await readFile(path)
    const report = await page.evaluate<Report & { truthFrames: number }>(
      `(${readInPieces})("${file.toString('base64')}", ${JSON.stringify(truth)})`,
    )
    expect(report.frames).toBe(report.truthFrames)
    expect(report.peak).toBeGreaterThan(0.2)
    expect(report.difference).toBeLessThan(1e-4)
    // Files decoded as a whole are not read in pieces.
    expect(report.pieceBytes).toBeGreaterThan(0)
    // A piece of Ogg is searched in stretches of a fixed size, which is much of a short file.
    if (!name.endsWith('.ogg')) expect(report.pieceBytes).toBeLessThan(file.byteLength / 2)
  })

  test.each(['flac', 'flac24', 'mp3'] as const)(
    '%s is read in pieces, with each sample in its place',
    async (format) => {
      const path = join(folder, `stem.${format}`)
      const encoder = await openEncoder(path, { sampleRate: rate, channels: 2, format })
      const [tone, hiss] = [sine(seconds * rate, 440, rate, 0.4), noise(seconds * rate)]
      // The level rises, so that pieces from different places differ.
      const rising = tone.map((sample, n) => (sample * n) / tone.length)
      await encoder.write([rising, hiss])
      await encoder.close()
      const file = await readFile(path)
      const report = await page.evaluate<Report>(`(${readInPieces})("${file.toString('base64')}")`)
      expect(report.frames).toBe(seconds * rate)
      expect(report.peak).toBeGreaterThan(0.2)
      // MP3 decoders start with other left-over bits than in the middle of a file.
      expect(report.difference).toBeLessThan(format === 'mp3' ? 1e-4 : 1e-6)
      expect(report.pieceBytes).toBeLessThan(file.byteLength / 4)
    },
  )
})

/** Runs in the page, as text, because the tests are compiled without browser types. */
const readInPieces = `async (base64, served) => {
  const file = Uint8Array.fromBase64(base64)
  let bytes = 0
  const read = async ({ start, end }) => {
    const part = file.slice(start, end === undefined ? undefined : end + 1)
    bytes += part.byteLength
    return { bytes: part.buffer, totalBytes: file.byteLength }
  }
  const { signal } = new AbortController()
  const source = await pcm.openPcm(read, signal)
  const whole = served
    ? served.map((plane) => new Float32Array(Uint8Array.fromBase64(plane).buffer))
    : await new OfflineAudioContext(2, 1, source.sampleRate)
        .decodeAudioData(file.slice().buffer)
        .then((buffer) => [0, 1].map((channel) => buffer.getChannelData(channel)))
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
      const truth = whole[channel]
      for (let n = 0; n < plane.length; n++) {
        difference = Math.max(difference, Math.abs(plane[n] - truth[from + n]))
        peak = Math.max(peak, Math.abs(plane[n]))
      }
    }
  }
  return { frames: source.frames, difference, peak, pieceBytes, truthFrames: whole[0].length }
}`
