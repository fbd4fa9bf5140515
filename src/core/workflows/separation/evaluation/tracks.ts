import { basename } from 'node:path'
import { StemworkError } from '../../../engine/errors.js'
import type { AudioStream } from '../../../media/dsp/audio-stream.js'
import { openAudio } from '../../../media/decode/open-audio.js'
import { resample } from '../../../media/dsp/resample.js'
import { toStereo } from '../../../media/dsp/stereo.js'
import { type NamedStream, sideBySide } from './side-by-side.js'

/**
 * Joins several tracks as stereo in one stream, at this rate; if it is undefined, at their own, which must be the same
 * for all.
 */
export async function tracks(
  paths: readonly string[],
  sampleRate: number | undefined,
  signal?: AbortSignal,
): Promise<AudioStream> {
  const sources: NamedStream[] = []
  for (const path of paths) {
    const name = basename(path)
    const stream = await openAudio(path, { signal }).catch((error: unknown) => {
      throw StemworkError.is(error)
        ? new StemworkError(error.code, `${name}: ${error.message}`, { reason: error.reason, cause: error })
        : error
    })
    sources.push({ name, stream: toStereo(resample(stream, sampleRate ?? stream.sampleRate)) })
  }
  return sideBySide(sources)
}

/** Sums stereo tracks into two planes. */
export function addStereo(sum: Float32Array[], parts: readonly Float32Array[]): Float32Array[] {
  sum.forEach((plane, channel) => {
    plane.set(parts[channel]!)
    for (let part = channel + 2; part < parts.length; part += 2) {
      const values = parts[part]!
      for (let i = 0; i < plane.length; i++) plane[i]! += values[i]!
    }
  })
  return sum
}
