import type { AudioBlock, AudioStream } from '../audio-stream.js'
import { resample } from '../resample.js'
import { TimeStretch } from './time-stretch.js'

export interface Stretching {
  /** Speed by the given one, 0.5 to 2: 1.25 is a quarter faster, at the same pitch. Default: 1. */
  tempo?: number
  /** By how much the pitch is raised, -12 to 12, at the same tempo. Default: 0. */
  semitones?: number
}

/** Up to this many phases the resampler needs no interpolation. Their ratios are exact to a tenth of a cent. */
const mostPhases = 1024

/**
 * At another tempo, another pitch, or both; n samples become `n / tempo`, rounded. Memory does not grow with length.
 */
export function stretched(stream: AudioStream, { tempo = 1, semitones = 0 }: Stretching): AudioStream {
  if (tempo === 1 && semitones === 0) return stream
  const { sampleCount } = stream
  return {
    ...stream,
    sampleCount: sampleCount === undefined ? undefined : Math.round(sampleCount / tempo),
    blocks: stretchedBlocks(stream, tempo, semitones),
  }
}

async function* stretchedBlocks(stream: AudioStream, tempo: number, semitones: number): AsyncGenerator<AudioBlock> {
  const { sampleRate, channelCount } = stream
  let [sampleCount, written] = [0, 0]
  async function* counted(): AsyncGenerator<AudioBlock> {
    for await (const block of stream.blocks) {
      sampleCount += block.channels[0]!.length
      yield block
    }
  }
  // Played faster it is higher and shorter; then it gets its length.
  const [over, under] = nearestFraction(2 ** (semitones / 12))
  const faster = resample({ ...stream, blocks: counted(), sampleRate: over }, under)
  const stretch = new TimeStretch({ sampleRate, channelCount, ratio: over / under / tempo })
  for await (const { channels } of faster.blocks) {
    stretch.push(channels)
    for (let output = stretch.pull(); output; output = stretch.pull()) {
      written += stretch.hop
      yield { channels: output.map((plane) => plane.slice()) }
    }
  }
  stretch.end()
  for (const length = Math.round(sampleCount / tempo); written < length; written += stretch.hop)
    yield { channels: stretch.pull()!.map((plane) => plane.slice(0, length - written)) }
}

/** By continued fractions. */
function nearestFraction(value: number): [number, number] {
  let [over, under, lastOver, lastUnder] = [Math.floor(value), 1, 1, 0]
  for (let rest = value - over; rest > 1e-9;) {
    const whole = Math.floor(1 / rest)
    rest = 1 / rest - whole
    const next = [whole * over + lastOver, whole * under + lastUnder] as const
    if (next[1] > mostPhases) break
    ;[lastOver, lastUnder, over, under] = [over, under, ...next]
  }
  return [over, under]
}
