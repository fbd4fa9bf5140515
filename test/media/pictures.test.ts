import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inflateSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { processRunner } from '../../src/core/engine/runner/process-runner.js'
import { collectLevels } from '../../src/core/media/pictures/levels.js'
import { peaksJson } from '../../src/core/media/pictures/peaks-json.js'
import { waveformPicture } from '../../src/core/media/pictures/waveform-picture.js'
import { stemsWorkflow } from '../../src/core/workflows/separation/stems-workflow.js'
import type { Peaks } from '../../src/http/jobs/fewer-peaks.js'
import { noise, sine, streamOf, writeWav } from '../separation/tracks.js'
import { orderOf, run } from '../runner/run-order.js'

describe('levels', () => {
  it.each([1, 255, 256, 257, 5000, 100_000])(
    'are computed from all of %i samples, whatever the blocks',
    async (sampleCount) => {
      const left = noise(sampleCount, 3)
      const right = sine(sampleCount, 440, 44_100, 0.25)
      const { samplesPerBin, lowest, highest, effective } = await collectLevels(streamOf([left, right]), {
        maxBins: 16,
      })
      expect(samplesPerBin).toBe(Math.max(256, 2 ** Math.ceil(Math.log2(sampleCount / 16))))
      expect(lowest.length).toBe(Math.ceil(sampleCount / samplesPerBin))
      for (let bin = 0; bin < lowest.length; bin++) {
        const samples = [left, right].flatMap((plane) => [
          ...plane.subarray(bin * samplesPerBin, (bin + 1) * samplesPerBin),
        ])
        expect(lowest[bin]).toBe(Math.min(...samples))
        expect(highest[bin]).toBe(Math.max(...samples))
        expect(effective[bin]).toBeCloseTo(
          Math.sqrt(samples.reduce((sum, value) => sum + value ** 2, 0) / samples.length),
          6,
        )
      }
    },
  )
})

describe('peaks', () => {
  it('are written as audiowaveform JSON, 8 bits, clipped to full scale', async () => {
    const plane = new Float32Array(600).fill(0.5, 0, 256).fill(-1.5, 256, 512)
    plane[10] = 1.2
    const peaks = JSON.parse(peaksJson(await collectLevels(streamOf([plane], 48_000)))) as Peaks
    expect(peaks).toEqual({
      version: 2,
      channels: 1,
      sample_rate: 48_000,
      samples_per_pixel: 256,
      bits: 8,
      length: 3,
      data: [64, 127, -128, -128, 0, 0],
    })
  })
})

describe('the overview picture', () => {
  it('shows a loud second half, the effective level before the peaks, and silence as a line', async () => {
    const sampleCount = 100_000
    const plane = sine(sampleCount, 441, 44_100, 0.8).fill(0, 0, sampleCount / 2)
    const opacity = decodePng(
      waveformPicture(await collectLevels(streamOf([plane])), { width: 100, height: 80, colour: [1, 2, 3] }),
      [1, 2, 3],
    )
    const column = (x: number) => Array.from({ length: 80 }, (_, y) => opacity[y * 100 + x])
    const silent = column(10)
    expect([silent[39], silent[40]].map((value) => value! > 100)).toEqual([true, true])
    expect(silent.reduce((sum, value) => sum! + value!)).toBe(silent[39]! + silent[40]!)
    const loud = column(80)
    // Full scale is 40 pixels: peaks at 0.8 reach 32 pixels, the effective level 0.8 / sqrt(2) reaches 22.6.
    expect([loud[7], loud[9], loud[16], loud[18], loud[40], loud[61], loud[63], loud[72]]).toEqual([
      0, 115, 115, 255, 255, 255, 115, 0,
    ])
  })
})

describe('the stems workflow', () => {
  it('adds pictures of both stems on request', async () => {
    const workflow = stemsWorkflow({ threads: 1 })
    expect(Object.keys(workflow.outputs({ pictures: false }))).toEqual(['vocals', 'accompaniments'])
    expect(workflow.params.safeParse({ inputUrl: 'https://example.com/a.mp3', pictures: 'yes' }).success).toBe(false)

    const folder = await mkdtemp(join(tmpdir(), 'stemwork-pictures-'))
    const runner = processRunner({ resolve: () => workflow })
    try {
      const path = join(folder, 'song.wav')
      await writeWav(path, [noise(120_000, 1), noise(120_000, 2)], 44_100)
      const { outputs } = await run(runner, await orderOf(workflow, { inputUrl: path }, folder, { pictures: true }))
      expect(Object.values(outputs).map(({ fileName, contentType }) => `${fileName} ${contentType}`)).toEqual([
        'vocals.wav audio/wav',
        'accompaniments.wav audio/wav',
        'vocals.peaks.json application/json',
        'vocals.waveform.png image/png',
        'accompaniments.peaks.json application/json',
        'accompaniments.waveform.png image/png',
      ])
      const peaks = JSON.parse(await readFile(outputs.accompanimentsPeaks!.path, 'utf8')) as Peaks
      expect([peaks.length, peaks.data.length]).toEqual([Math.ceil(120_000 / 256), 2 * Math.ceil(120_000 / 256)])
      expect(Math.max(...peaks.data)).toBeGreaterThan(10)
      const opacity = decodePng(await readFile(outputs.vocalsWaveform!.path), [209, 73, 91])
      expect(opacity.length).toBe(1800 * 240)
    } finally {
      await runner.close()
      await rm(folder, { recursive: true })
    }
  })
})

/** The opacities of a palette picture, after a check of its parts. */
function decodePng(bytes: Buffer, colour: number[]): Uint8Array {
  expect(bytes.subarray(0, 8).toString('latin1')).toBe('\x89PNG\r\n\x1a\n')
  const chunks = new Map<string, Buffer>()
  for (let at = 8; at < bytes.length; at += 12 + bytes.readUInt32BE(at)) {
    chunks.set(bytes.toString('latin1', at + 4, at + 8), bytes.subarray(at + 8, at + 8 + bytes.readUInt32BE(at)))
  }
  const part = (name: string) => chunks.get(name) ?? Buffer.alloc(0)
  const [width, height] = [part('IHDR').readUInt32BE(0), part('IHDR').readUInt32BE(4)]
  expect([...part('PLTE').subarray(0, 3)]).toEqual(colour)
  expect([...part('tRNS').subarray(0, 3)]).toEqual([0, 1, 2])
  const rows = inflateSync(part('IDAT'))
  expect(rows.length).toBe(height * (width + 1))
  return Uint8Array.from(
    { length: width * height },
    (_, index) => rows[Math.floor(index / width) * (width + 1) + 1 + (index % width)]!,
  )
}
