import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ClientError } from '../../../src/client/client.js'
import { openPcm, type PcmSource, type RangeReader } from '../../../src/console/sources/pcm-source.js'
import { bands, readSpectrum } from '../../../src/console/pictures/spectrum.js'
import { clock, durationWords, explain, outputWords, timeLeftWords } from '../../../src/console/words/words.js'
import { openEncoder } from '../../../src/core/media/encode/encoder.js'

const never = new AbortController().signal

describe('reading a result', () => {
  test.each([
    ['16', 2 ** -15],
    ['24', 2 ** -23],
    ['32f', 0],
    ['aiff', 2 ** -15],
    ['aiff24', 2 ** -23],
    ['aiff32f', 0],
  ] as const)('gives the samples of any stretch of an uncompressed file, format %s', async (format, tolerance) => {
    const folder = await mkdtemp(join(tmpdir(), 'stemwork-console-'))
    const left = Float32Array.from({ length: 5000 }, (_, n) => Math.sin(n) * 0.9)
    const right = left.map((value) => -value / 3)
    const path = join(folder, 'a.wav')
    const writer = await openEncoder(path, { sampleRate: 44_100, channels: 2, format })
    await writer.write([left, right])
    await writer.close()
    const source = await openPcm(rangesOf(await readFile(path)), never)
    await rm(folder, { recursive: true })
    expect([source.sampleRate, source.frames]).toEqual([44_100, 5000])
    const planes = await source.read(1234, 10_000, never)
    expect(planes.map(({ length }) => length)).toEqual([3766, 3766])
    for (const [channel, truth] of [left, right].entries()) {
      for (let n = 0; n < 3766; n++)
        expect(Math.abs(planes[channel]![n]! - truth[1234 + n]!)).toBeLessThanOrEqual(tolerance)
    }
  })
})

describe('the spectrogram', () => {
  test('shows a full-scale tone at 0 dB in its band, and silence at the floor', () => {
    const rate = 44_100
    const tone = Float32Array.from({ length: 2048 }, (_, n) => Math.sin((2 * Math.PI * 1000 * n) / rate))
    const levels = bands([tone, tone], 160, rate)
    const loudest = levels.indexOf(Math.max(...levels))
    const hertz = 40 * (16_000 / 40) ** (loudest / 160)
    expect(hertz).toBeGreaterThan(900)
    expect(hertz).toBeLessThan(1100)
    expect(levels[loudest]).toBeGreaterThan(0.98)
    expect(levels[150]).toBeLessThan(0.4)
    expect(Math.max(...bands([new Float32Array(2048)], 160, rate))).toBe(0)
  })

  test.each([60_000, 40_000_000])(
    'fills every column of %i frames and reads no more than a megabyte of samples at once',
    async (frames) => {
      const reads: number[] = []
      const source: PcmSource = {
        sampleRate: 44_100,
        frames,
        async read(from, count) {
          expect(from + count).toBeLessThanOrEqual(frames)
          reads.push(count)
          return [new Float32Array(count)]
        },
      }
      const filled = new Set<number>()
      await readSpectrum(source, { columns: 480, rows: 10, signal: never, onColumn: (column) => filled.add(column) })
      expect(filled.size).toBe(480)
      expect(Math.max(...reads)).toBeLessThan(2 ** 18 + 2048)
    },
  )
})

test('a used-up quota is told in the words of the page, and those of the service are a detail', () => {
  const message = 'The application may use 5 jobs a day and has used 5.'
  const { text, detail } = explain(new ClientError(message, { code: 'QUOTA_EXCEEDED', status: 429, requestId: 'r1' }))
  expect([text, detail]).toEqual([expect.stringContaining('in a day'), `${message} (Request r1)`])
})

describe('the time left', () => {
  test('is put into words', () => {
    expect([3, 41, 70, 200, undefined].map(timeLeftWords)).toEqual([
      'A few seconds left',
      'About 45 seconds left',
      'About a minute left',
      'About 3 minutes left',
      'Estimating the time left',
    ])
    expect([40, 420, 65_000, 3_900_000].map(durationWords)).toEqual(['< 0.1 s', '0.4 s', '1 min 5 s', '1 h 5 min'])
    expect([0, 61.9, 3723].map(clock)).toEqual(['0:00', '1:01', '1:02:03'])
    expect(['vocals', 'accompanimentsPeaks', 'loudness_report'].map(outputWords)).toEqual([
      'Vocals',
      'Accompaniment peaks',
      'Loudness report',
    ])
  })
})

function rangesOf(file: Buffer): RangeReader {
  return async ({ start, end }) => ({
    bytes: new Uint8Array(file.subarray(start, end === undefined ? undefined : end + 1)).buffer,
    totalBytes: file.byteLength,
  })
}
