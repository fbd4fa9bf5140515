import type { AudioStream } from '../media/dsp/audio-stream.js'

/**
 * The stream, with reports of how far it has been read, 0..1. A header may state too few samples or none; then it is
 * the fraction of the source's bytes.
 */
export function withProgress(stream: AudioStream, report: (fraction: number) => void): AudioStream {
  return { ...stream, blocks: reported(stream, report) }
}

async function* reported({ blocks, sampleCount, readFraction }: AudioStream, report: (fraction: number) => void) {
  let done = 0
  for await (const block of blocks) {
    yield block
    done += block.channels[0]!.length
    report(sampleCount ? Math.min(1, done / sampleCount) : (readFraction?.() ?? 0))
  }
}
