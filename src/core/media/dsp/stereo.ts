import type { AudioBlock, AudioStream, Speaker } from './audio-stream.js'

const half = Math.SQRT1_2

/** Gain of each speaker in the left and the right output (ITU-R BS.775-4, table 2; the LFE channel is left out). */
const gains: Record<Speaker, readonly [left: number, right: number]> = {
  left: [1, 0],
  right: [0, 1],
  centre: [half, half],
  lfe: [0, 0],
  surroundLeft: [half, 0],
  surroundRight: [0, half],
  surroundCentre: [0.5, 0.5],
  mono: [1, 1],
}

/** WAVE order by channel count. It applies unless a stream names its speakers. */
const defaultSpeakers: Record<number, readonly Speaker[]> = {
  1: ['mono'],
  2: ['left', 'right'],
  3: ['left', 'right', 'centre'],
  4: ['left', 'right', 'surroundLeft', 'surroundRight'],
  5: ['left', 'right', 'centre', 'surroundLeft', 'surroundRight'],
  6: ['left', 'right', 'centre', 'lfe', 'surroundLeft', 'surroundRight'],
  7: ['left', 'right', 'centre', 'lfe', 'surroundCentre', 'surroundLeft', 'surroundRight'],
  8: ['left', 'right', 'centre', 'lfe', 'surroundLeft', 'surroundRight', 'surroundLeft', 'surroundRight'],
}

/**
 * Converts any number of channels to two: mono is duplicated, stereo is unchanged, and more channels are mixed down
 * with the ITU coefficients. The mix is scaled by one constant per layout (0.41 for 5.1), so that full-scale channels
 * cannot clip together.
 */
export function toStereo(stream: AudioStream): AudioStream {
  if (stream.channelCount === 2) return stream
  return {
    ...stream,
    channelCount: 2,
    speakers: undefined,
    blocks: downMix(stream.blocks, mixingMatrix(speakersOf(stream))),
  }
}

/**
 * The speaker of each channel, as the stream names them or in the order of WAVE. A single channel is mono, whatever its
 * file says: writers of 24-bit WAV call it the centre.
 */
export function speakersOf({
  speakers,
  channelCount,
}: Pick<AudioStream, 'speakers' | 'channelCount'>): readonly Speaker[] {
  const named = channelCount === 1 ? undefined : speakers
  return named ?? defaultSpeakers[channelCount] ?? alternating(channelCount)
}

async function* downMix(
  blocks: AsyncIterable<AudioBlock>,
  matrix: readonly (readonly number[])[],
): AsyncGenerator<AudioBlock> {
  for await (const { channels } of blocks) {
    yield { channels: matrix.map((row) => weightedSum(channels, row)) }
  }
}

function mixingMatrix(speakers: readonly Speaker[]): number[][] {
  const rows = [0, 1].map((side) => speakers.map((speaker) => gains[speaker][side]!))
  const loudest = Math.max(1, ...rows.map((row) => row.reduce((sum, gain) => sum + gain, 0)))
  return rows.map((row) => row.map((gain) => gain / loudest))
}

function weightedSum(channels: readonly Float32Array[], weights: readonly number[]): Float32Array {
  const sum = new Float32Array(channels[0]!.length)
  channels.forEach((channel, index) => {
    const weight = weights[index]!
    if (weight === 0) return
    for (let i = 0; i < sum.length; i++) sum[i]! += weight * channel[i]!
  })
  return sum
}

/** Beyond eight channels there is no common order: odd ones go left, even ones right. */
function alternating(channelCount: number): Speaker[] {
  return Array.from({ length: channelCount }, (_, index) => (index % 2 === 0 ? 'left' : 'right'))
}
