import { mkdtemp, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { separate, type SeparationProgress } from '../../src/core/workflows/separation/separate.js'
import { maxDifference, noise, readAudio, sine, writeWav } from './tracks.js'
import { temporaryFolder } from '../temporary-folder.js'

const folder = temporaryFolder()

const inFolder = (name: string) => ({
  vocals: join(folder, `${name}-vocals.wav`),
  accompaniments: join(folder, `${name}-accompaniments.wav`),
})

async function separated(name: string, channels: Float32Array[], sampleRate: number) {
  const input = join(folder, `${name}.wav`)
  const outputs = inFolder(name)
  await writeWav(input, channels, sampleRate)
  const result = await separate(input, { outputs, format: '32f' })
  return { result, vocals: await readAudio(outputs.vocals), accompaniments: await readAudio(outputs.accompaniments) }
}

/** A glide over a chord with a beat. How well the network separates is tested in embedded-model.test.ts. */
function song(sampleCount: number, sampleRate: number, seed = 1): Float32Array {
  const hiss = noise(sampleCount, seed)
  return new Float32Array(sampleCount).map((_, n) => {
    const t = n / sampleRate
    const voice = 0.2 * Math.sin(2 * Math.PI * 220 * t + 3 * Math.sin(2 * Math.PI * 5 * t))
    const chord = 0.1 * (Math.sin(2 * Math.PI * 130.8 * t) + Math.sin(2 * Math.PI * 164.8 * t))
    const beat = Math.exp(-20 * (t % 0.5)) * 0.3 * hiss[n]!
    return voice + chord + beat
  })
}

describe('separate', () => {
  it.each([
    { name: '0.1 s', sampleCount: 4410 },
    { name: 'one sample', sampleCount: 1 },
    { name: 'an odd number of samples', sampleCount: 99_999 },
    { name: 'a little more than a segment', sampleCount: 928 * 512 + 1 },
    { name: 'several segments', sampleCount: 1_200_007 },
  ])('writes two stems of the length of $name whose sum is the mixture', async ({ name, sampleCount }) => {
    const mixture = [song(sampleCount, 44_100, 1), song(sampleCount, 44_100, 2)]
    const { result, vocals, accompaniments } = await separated(name.replaceAll(' ', '-'), mixture, 44_100)
    expect(result).toMatchObject({ sampleRate: 44_100, seconds: sampleCount / 44_100, clippedSamples: 0 })
    for (const channel of [0, 1]) {
      expect(vocals.channels[channel]).toHaveLength(sampleCount)
      const sum = vocals.channels[channel]!.map((value, i) => value + accompaniments.channels[channel]![i]!)
      expect(maxDifference(sum, mixture[channel]!)).toBeLessThan(1e-6)
    }
  })

  it('duplicates mono', async () => {
    const mixture = song(100_000, 44_100)
    const { vocals, accompaniments } = await separated('mono', [mixture], 44_100)
    expect(vocals.channels).toHaveLength(2)
    expect(maxDifference(vocals.channels[0]!, vocals.channels[1]!)).toBeLessThan(1e-6)
    expect(
      maxDifference(
        vocals.channels[1]!.map((value, i) => value + accompaniments.channels[1]![i]!),
        mixture,
      ),
    ).toBeLessThan(1e-6)
  })

  it('keeps silence silent', async () => {
    const { vocals, accompaniments } = await separated(
      'silence',
      [new Float32Array(60_000), new Float32Array(60_000)],
      44_100,
    )
    for (const plane of [...vocals.channels, ...accompaniments.channels])
      expect(maxDifference(plane, new Float32Array(60_000))).toBe(0)
  })

  it.each([8000, 11_025, 22_050, 32_000, 48_000, 88_200, 96_000])(
    'takes audio at %i Hz and writes 44.1 kHz',
    async (sampleRate) => {
      const sampleCount = Math.round(1.3 * sampleRate)
      const tone = sine(sampleCount, 500, sampleRate)
      const { vocals, accompaniments } = await separated(`rate-${sampleRate}`, [tone, tone], sampleRate)
      expect(vocals.sampleRate).toBe(44_100)
      expect(vocals.channels[0]).toHaveLength(Math.ceil((sampleCount * 44_100) / sampleRate))
      const sum = vocals.channels[0]!.map((value, i) => value + accompaniments.channels[0]![i]!)
      const expected = sine(sum.length, 500, 44_100)
      expect(maxDifference(sum.subarray(2000, -2000), expected.subarray(2000, -2000))).toBeLessThan(1e-3)
    },
  )

  it('clips what exceeds the integer range and counts it, in 16 and 24 bits', async () => {
    const input = join(folder, 'loud.wav')
    await writeWav(input, [sine(50_000, 300, 44_100, 3), sine(50_000, 300, 44_100, 3)], 44_100)
    for (const format of ['16', '24'] as const) {
      const outputs = inFolder(`loud-${format}`)
      const { clippedSamples } = await separate(input, { outputs, format })
      expect(clippedSamples).toBeGreaterThan(1000)
      const { channels } = await readAudio(outputs.accompaniments)
      expect(Math.max(...channels[0]!.slice(0, 20_000))).toBeLessThanOrEqual(1)
    }
  })

  it('reports progress that only grows, with the time left, and ends at 1', async () => {
    const input = join(folder, 'long.wav')
    const mixture = song(2_000_000, 44_100)
    await writeWav(input, [mixture, mixture], 44_100, '16')
    const seen: SeparationProgress[] = []
    await separate(input, { outputs: inFolder('long'), onProgress: (progress) => seen.push(progress) })
    expect(seen.length).toBeGreaterThanOrEqual(4)
    for (let i = 1; i < seen.length; i++) {
      expect(seen[i]!.progress).toBeGreaterThan(seen[i - 1]!.progress)
      expect(seen[i]!.samplesDone).toBeGreaterThanOrEqual(seen[i - 1]!.samplesDone)
    }
    for (const { progress, etaSeconds } of seen.slice(0, -1)) {
      expect(progress).toBeLessThan(1)
      expect(etaSeconds).toBeGreaterThan(0)
    }
    expect(seen.at(-1)).toEqual({ progress: 1, etaSeconds: 0, samplesDone: 2_000_000 })
  })

  it('loads the network once per process', async () => {
    const input = join(folder, 'warm.wav')
    await writeWav(input, [sine(10_000, 300, 44_100)], 44_100)
    // A number of threads that no other test uses, so that the first call has to load a network.
    const threads = 3
    const first = await separate(input, { outputs: inFolder('warm-1'), threads })
    const second = await separate(input, { outputs: inFolder('warm-2'), threads })
    expect(second.timings.load).toBeLessThan(first.timings.load / 2)
    expect(second.models).toMatchObject([{ name: 'tiny-band-unet-5', sha256: expect.stringMatching(/^[0-9a-f]{64}$/) }])
  })

  it('leaves nothing behind when it is cancelled, and works again afterwards', async () => {
    const input = join(folder, 'cancelled.wav')
    const own = await mkdtemp(join(folder, 'cancelled-'))
    const outputs = { vocals: join(own, 'vocals.wav'), accompaniments: join(own, 'accompaniments.wav') }
    const mixture = noise(1_500_000)
    await writeWav(input, [mixture, mixture], 44_100)
    const controller = new AbortController()
    const reason = new Error('enough')
    const running = separate(input, { outputs, signal: controller.signal, onProgress: () => controller.abort(reason) })
    await expect(running).rejects.toBe(reason)
    expect(await readdir(own)).toEqual([])
    await separate(input, { outputs })
    expect((await readdir(own)).sort()).toEqual(['accompaniments.wav', 'vocals.wav'])
  })

  it('refuses what is not audio or too long, and leaves no file', async () => {
    const own = await mkdtemp(join(folder, 'refused-'))
    const outputs = { vocals: join(own, 'vocals.wav'), accompaniments: join(own, 'accompaniments.wav') }
    const text = join(folder, 'text.wav')
    await writeFile(text, 'this is no audio at all, whatever its name says')
    await expect(separate(text, { outputs })).rejects.toMatchObject({ code: 'BAD_INPUT' })
    const long = join(folder, 'too-long.wav')
    await writeWav(long, [new Float32Array(100_000)], 44_100)
    await expect(separate(long, { outputs, maxSeconds: 1 })).rejects.toMatchObject({
      code: 'BAD_INPUT',
      reason: 'too_long',
    })
    const empty = join(folder, 'empty.wav')
    await writeWav(empty, [new Float32Array(0)], 44_100)
    await expect(separate(empty, { outputs })).rejects.toMatchObject({ code: 'BAD_INPUT', reason: 'no_audio' })
    expect(await readdir(own)).toEqual([])
  })

  it('leaves no first file if the second one cannot be opened', async () => {
    const own = await mkdtemp(join(folder, 'pair-'))
    const input = join(folder, 'pair.wav')
    await writeWav(input, [sine(10_000, 300, 44_100)], 44_100)
    const outputs = { vocals: join(own, 'vocals.wav'), accompaniments: join(own, 'missing', 'accompaniments.wav') }
    await expect(separate(input, { outputs })).rejects.toMatchObject({ code: 'ENOENT' })
    expect(await readdir(own)).toEqual([])
  })
})
