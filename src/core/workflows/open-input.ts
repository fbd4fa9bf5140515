import type { StageContext } from '../engine/workflow/workflow.js'
import type { AudioStream } from '../media/dsp/audio-stream.js'
import { type Decoders, openAudio } from '../media/decode/open-audio.js'

/**
 * Opens a file of the job as audio, at most as long as the host allows.
 *
 * @param report gets the fraction read so far, 0..1; a header may state too few samples, or none: then it is the
 * fraction of the source's bytes.
 */
export async function openInput(
  { limits, signal }: Pick<StageContext<unknown>, 'limits' | 'signal'>,
  path: string,
  decoders?: Decoders,
  report?: (fraction: number) => void,
): Promise<AudioStream> {
  const stream = await openAudio(path, { signal, maxSeconds: limits.maxAudioSeconds, decoders })
  return report ? { ...stream, blocks: reported(stream, report) } : stream
}

async function* reported({ blocks, sampleCount, readFraction }: AudioStream, report: (fraction: number) => void) {
  let done = 0
  for await (const block of blocks) {
    yield block
    done += block.channels[0]!.length
    report(sampleCount ? Math.min(1, done / sampleCount) : (readFraction?.() ?? 0))
  }
}
