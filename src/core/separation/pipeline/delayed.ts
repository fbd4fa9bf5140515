import type { AudioBlock, AudioStream } from '../dsp/audio-stream.js'

/** The stream with so many frames of silence before it. */
export function delayed(stream: AudioStream, frames: number): AudioStream {
  if (frames === 0) return stream
  return {
    ...stream,
    frames: stream.frames === undefined ? undefined : stream.frames + frames,
    blocks: delayedBlocks(stream, frames),
  }
}

async function* delayedBlocks({ blocks, channelCount }: AudioStream, frames: number): AsyncGenerator<AudioBlock> {
  yield { channels: Array.from({ length: channelCount }, () => new Float32Array(frames)) }
  yield* blocks
}
