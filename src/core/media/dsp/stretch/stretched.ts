import type { AudioBlock, AudioStream } from '../audio-stream.js'
import { type Stretching, TempoAndPitch } from './tempo-and-pitch.js'

/**
 * Changes the tempo, the pitch, or both; n samples become `n / tempo`, rounded. Memory does not grow with length.
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
  const change = new TempoAndPitch({ sampleRate, channelCount, tempo, semitones })
  for await (const { channels } of stream.blocks) {
    sampleCount += channels[0]!.length
    change.push(channels)
    for (let output = change.pull(); output; output = change.pull()) {
      written += change.hop
      yield { channels: output.map((plane) => plane.slice()) }
    }
  }
  change.end()
  for (const length = Math.round(sampleCount / tempo); written < length; written += change.hop)
    yield { channels: change.pull()!.map((plane) => plane.slice(0, length - written)) }
}
