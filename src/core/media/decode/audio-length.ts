import { badInput, type StemworkError } from '../../engine/errors.js'
import type { AudioStream } from '../dsp/audio-stream.js'

/** Compressed formats include the encoder's padding, up to a few thousand samples. */
const paddingSeconds = 0.2

/** Whether the stated length is more than padding above the limit. */
export function statesTooLong(seconds: number | undefined, maxSeconds: number): boolean {
  return seconds !== undefined && seconds > maxSeconds + paddingSeconds
}

/** A stated length is believed if it is at least this share of the length estimated from a part of the file. */
const believedShare = 0.7
/** A part allows an estimate of the whole after this much audio in this many bytes ... */
const tellingBytes = 512 * 1024
const tellingSeconds = 10
/** ... or after this much audio, however few bytes it takes: hours of silence fit into half a megabyte. */
const tellingSecondsAlone = 60

/**
 * Reports whether a file whose header states too much is really too long: headers may be wrong. Decodes until there is
 * too much audio, or until a part of the bytes confirms the header.
 *
 * @param file `readBytes` is how many bytes of it the stream has read
 */
export async function isTooLong(
  { blocks, sampleRate }: AudioStream,
  stated: number,
  maxSeconds: number,
  file: { size: number; readBytes(): number },
): Promise<boolean> {
  let seconds = 0
  for await (const { channels } of blocks) {
    seconds += channels[0]!.length / sampleRate
    if (seconds > maxSeconds) return true
    const bytes = file.readBytes()
    const isTelling = seconds >= (bytes >= tellingBytes ? tellingSeconds : tellingSecondsAlone)
    if (isTelling && (seconds / bytes) * file.size >= believedShare * stated) return true
  }
  return false
}

export function tooLong(maxSeconds: number): StemworkError {
  return badInput('too_long', `The audio is longer than the allowed ${maxSeconds} seconds. Shorten it.`)
}

/**
 * Describes the difference between the stated and the decoded length in a sentence, if it is more than padding.
 */
export function lengthDifference(stated: number, decoded: number): string | undefined {
  if (Math.abs(stated - decoded) <= paddingSeconds) return undefined
  const lengths = `The file states a length of ${stated.toFixed(2)} seconds, but ${decoded.toFixed(2)} were decoded`
  return decoded < stated ? `${lengths}: it was cut off or is damaged.` : `${lengths}; all of them are used.`
}
