import type { AudioBlock, AudioStream } from '../../../media/dsp/audio-stream.js'

/** The stream with `sampleCount` samples of silence before it. */
export function delayed(stream: AudioStream, sampleCount: number): AudioStream {
  if (sampleCount === 0) return stream
  return {
    ...stream,
    sampleCount: stream.sampleCount === undefined ? undefined : stream.sampleCount + sampleCount,
    blocks: delayedBlocks(stream, sampleCount),
  }
}

async function* delayedBlocks({ blocks, channelCount }: AudioStream, sampleCount: number): AsyncGenerator<AudioBlock> {
  yield { channels: Array.from({ length: channelCount }, () => new Float32Array(sampleCount)) }
  yield* blocks
}
