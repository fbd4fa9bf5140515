import { badInput, type StemworkError } from '../../engine/errors.js'

/** Compressed formats include the encoder's padding, up to a few thousand samples. */
const paddingSeconds = 0.2

/** @throws StemworkError `BAD_INPUT` `too_long` if the stated length is more than padding above the limit */
export function refuseLong(seconds: number | undefined, maxSeconds: number): void {
  if (seconds !== undefined && seconds > maxSeconds + paddingSeconds) throw tooLong(maxSeconds)
}

export function tooLong(maxSeconds: number): StemworkError {
  return badInput('too_long', `The audio is longer than the allowed ${maxSeconds} seconds. Shorten it.`)
}

/** A sentence on the difference between the length that a file states and what was decoded, if it is more than padding. */
export function lengthDifference(stated: number, decoded: number): string | undefined {
  if (Math.abs(stated - decoded) <= paddingSeconds) return undefined
  const lengths = `The file states a length of ${stated.toFixed(2)} seconds, and ${decoded.toFixed(2)} were decoded`
  return decoded < stated ? `${lengths}: it was cut off or is damaged.` : `${lengths}; all of them are used.`
}
