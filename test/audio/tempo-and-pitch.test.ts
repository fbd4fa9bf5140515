import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { processRunner } from '../../src/core/engine/runner/process-runner.js'
import type { AudioStream } from '../../src/core/media/dsp/audio-stream.js'
import { stretched } from '../../src/core/media/dsp/stretch/stretched.js'
import { type Stretching, TempoAndPitch } from '../../src/core/media/dsp/stretch/tempo-and-pitch.js'
import { openEncoder } from '../../src/core/media/encode/encoder.js'
import { transcodeWorkflow } from '../../src/core/workflows/transcode/transcode-workflow.js'
import { opened, orderOf, run } from '../runner/run-order.js'
import { noise, readAudio } from '../separation/tracks.js'
import { temporaryFolder } from '../temporary-folder.js'

const sampleRate = 44_100

const sine = (hertz: number, seconds: number) =>
  Float32Array.from({ length: seconds * sampleRate }, (_, i) => 0.5 * Math.sin((2 * Math.PI * hertz * i) / sampleRate))

async function result(plane: Float32Array, stretching: Stretching): Promise<Float32Array> {
  const blocks: AudioStream['blocks'] = (async function* () {
    for (let from = 0; from < plane.length; from += 5000) yield { channels: [plane.subarray(from, from + 5000)] }
  })()
  const stream = { sampleRate, channelCount: 1, sampleCount: plane.length, format: 'wav', blocks }
  const made = stretched(stream, stretching)
  const output: number[] = []
  for await (const { channels } of made.blocks) output.push(...channels[0]!)
  expect(made.sampleCount).toBe(output.length)
  return Float32Array.from(output)
}

/** Frequency of a tone, from its first and last rising zero crossings. */
function hertzOf(samples: Float32Array): number {
  const zeros: number[] = []
  for (let i = 1; i < samples.length; i++) {
    const [before, here] = [samples[i - 1]!, samples[i]!]
    if (before < 0 && here >= 0) zeros.push(i - here / (here - before))
  }
  return (sampleRate * (zeros.length - 1)) / (zeros.at(-1)! - zeros[0]!)
}

describe('tempo and pitch', () => {
  it.each([-12, -7, -1, -0.3, 0.05, 1, 4.5, 12])('is within a cent of %f semitones more', async (semitones) => {
    const input = sine(440, 3)
    const output = await result(input, { semitones })
    expect(output).toHaveLength(input.length)
    const cents = 1200 * Math.log2(hertzOf(output.subarray(4410, -4410)) / 440)
    expect(Math.abs(cents - 100 * semitones)).toBeLessThan(0.5)
  })

  it.each([0.5, 0.93, 1.07, 2])('has %f times the tempo to the sample, at the same pitch', async (tempo) => {
    const input = sine(440, 3)
    const output = await result(input, { tempo })
    expect(output).toHaveLength(Math.round(input.length / tempo))
    expect(Math.abs(1200 * Math.log2(hertzOf(output.subarray(4410, -4410)) / 440))).toBeLessThan(0.1)
  })

  it.each([
    { tempo: 0.5, semitones: 0 },
    { tempo: 1.5, semitones: -12 },
    { tempo: 0.8, semitones: 3 },
  ])('of stems that are summed equal those of their sum: $tempo, $semitones', (stretching) => {
    const burst = noise(2000, 3)
    const strokes = new Float32Array(3 * sampleRate)
    for (let at = 5000; at + burst.length < strokes.length; at += 9000)
      burst.forEach((value, i) => (strokes[at + i] = value * Math.exp(-i / 200)))
    const stems = [strokes, sine(220, 3), noise(strokes.length, 5).map((value) => value / 8)]
    const sum = strokes.map((_, i) => stems.reduce((all, stem) => all + stem[i]!, 0))
    const made = (parts: readonly Float32Array[]) => {
      const change = new TempoAndPitch({ sampleRate, channelCount: 1, partCount: parts.length, ...stretching })
      change.push(parts)
      change.end()
      const output = parts.map((): number[] => [])
      while (change.position < sum.length) change.pull()!.forEach((plane, part) => output[part]!.push(...plane))
      return output
    }
    const [parts, [whole]] = [made(stems), made([sum])]
    const distance = (tracks: readonly number[][]) =>
      whole!.reduce((most, value, i) => {
        const all = tracks.reduce((added, track) => added + (track[i] ?? 0), 0)
        return Math.max(most, Math.abs(value - all))
      }, 0)
    expect(distance(parts)).toBeLessThan(1e-4)
    // Processed separately, their phases would differ.
    expect(distance(stems.map((stem) => made([stem])[0]!))).toBeGreaterThan(0.05)
  })

  it('takes audio that is shorter than a frame', async () => {
    expect(await result(sine(440, 0.01), { tempo: 0.5, semitones: 3 })).toHaveLength(882)
  })

  describe('in service/transcode', () => {
    const workflow = transcodeWorkflow()
    const folder = temporaryFolder()
    it('cuts by the time of the input, and fades and resamples the result', async () => {
      const runner = opened(processRunner({ resolve: () => workflow }))
      const path = join(folder, 'song.wav')
      const encoder = await openEncoder(path, { sampleRate, channels: 2, format: '32f' })
      // Half a second of 300 Hz, a second of 500 Hz.
      const tones = Float32Array.from([...sine(300, 0.5), ...sine(500, 1)])
      await encoder.write([tones, tones.map((value) => -value / 2)])
      await encoder.close()
      const params = {
        format: '32f',
        sampleRate: 48_000,
        startSeconds: 0.5,
        lengthSeconds: 0.8,
        fadeOutSeconds: 0.5,
        tempo: 0.8,
        semitones: 12,
      }
      const { outputs, details } = await run(runner, await orderOf(workflow, { inputUrl: path }, folder, params))
      expect(details).toMatchObject({ seconds: 1, sampleRate: 48_000, channels: 2 })
      const [left, right] = (await readAudio(outputs.audio!.path)).channels
      expect(left).toHaveLength(48_000)
      expect((hertzOf(left!.subarray(4800, 20_000)) * 48_000) / sampleRate).toBeCloseTo(1000, 0)
      const difference = left!.map((value, i) => Math.abs(value + 2 * right![i]!))
      expect(Math.max(...difference)).toBeLessThan(1e-5)
      expect(Math.abs(left!.at(-10)!)).toBeLessThan(0.001)
    })
  })
})
