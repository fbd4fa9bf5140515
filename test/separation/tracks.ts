import type { AudioBlock, AudioStream } from '../../src/core/media/dsp/audio-stream.js'
import { openAudio } from '../../src/core/media/decode/open-audio.js'
import type { PcmFormat } from '../../src/core/media/encode/pcm-encoder.js'
import { openWavWriter } from '../../src/core/media/encode/wav-writer.js'

/** Deterministic noise in -0.5..0.5, different for each seed. */
export function noise(sampleCount: number, seed = 1): Float32Array {
  const samples = new Float32Array(sampleCount)
  for (let i = 0, state = seed >>> 0; i < sampleCount; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    samples[i] = state / 2 ** 32 - 0.5
  }
  return samples
}

export function sine(sampleCount: number, hertz: number, sampleRate: number, level = 0.5): Float32Array {
  const samples = new Float32Array(sampleCount)
  // Periods are copied, because an hour of sines takes seconds to compute.
  const period = Number.isInteger(hertz) ? Math.min(sampleRate, sampleCount) : sampleCount
  for (let n = 0; n < period; n++) samples[n] = level * Math.sin((2 * Math.PI * hertz * n) / sampleRate)
  for (let n = period; n < sampleCount; n *= 2) samples.copyWithin(n, 0, n)
  return samples
}

/** A stream of the planes in blocks of uneven sizes, like those of decoders. */
export function streamOf(channels: Float32Array[], sampleRate = 44_100): AudioStream {
  return {
    sampleRate,
    channelCount: channels.length,
    sampleCount: channels[0]!.length,
    format: 'test',
    blocks: blocksOf(channels),
  }
}

export async function* blocksOf(channels: Float32Array[], sizes = [1152, 4096, 1, 30_000]): AsyncGenerator<AudioBlock> {
  for (let from = 0, turn = 0; from < channels[0]!.length; turn++) {
    const to = from + sizes[turn % sizes.length]!
    yield { channels: channels.map((plane) => plane.slice(from, to)) }
    from = to
  }
}

export async function writeWav(
  path: string,
  channels: Float32Array[],
  sampleRate: number,
  format: PcmFormat = '32f',
): Promise<void> {
  const writer = await openWavWriter(path, { sampleRate, channels: channels.length, format })
  for (let from = 0; from < channels[0]!.length; from += 65_536)
    await writer.write(channels.map((plane) => plane.subarray(from, from + 65_536)))
  await writer.close()
}

export async function collect({ blocks, channelCount }: AudioStream): Promise<Float32Array[]> {
  const parts: Float32Array[][] = Array.from({ length: channelCount }, () => [])
  for await (const { channels } of blocks) channels.forEach((plane, channel) => parts[channel]!.push(plane.slice()))
  return parts.map(joined)
}

export async function readAudio(path: string): Promise<{ sampleRate: number; channels: Float32Array[] }> {
  const stream = await openAudio(path)
  return { sampleRate: stream.sampleRate, channels: await collect(stream) }
}

export function joined(parts: Float32Array[]): Float32Array {
  const whole = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

export function maxDifference(a: Float32Array, b: Float32Array): number {
  if (a.length !== b.length) return Infinity
  let max = 0
  for (let i = 0; i < a.length; i++) max = Math.max(max, Math.abs(a[i]! - b[i]!))
  return max
}

/** Level of the difference of two signals below the second, in dB; `Infinity` if they are equal. */
export function decibelsAlike(found: Float32Array, expected: Float32Array): number {
  let [difference, power] = [0, 0]
  for (let i = 0; i < expected.length; i++) {
    const value = expected[i]!
    difference += (found[i]! - value) ** 2
    power += value ** 2
  }
  return difference === 0 && found.length === expected.length ? Infinity : 10 * Math.log10(power / difference)
}
