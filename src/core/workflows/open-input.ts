import type { StageContext } from '../engine/workflow/workflow.js'
import { type Decoders, openAudio } from '../media/decode/open-audio.js'

/** A file of the job as audio, no longer than the host allows. */
export function openInput(
  { limits, signal }: Pick<StageContext<unknown>, 'limits' | 'signal'>,
  path: string,
  decoders?: Decoders,
) {
  return openAudio(path, { signal, maxSeconds: limits.maxAudioSeconds, decoders })
}
