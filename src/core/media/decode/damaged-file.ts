import { badInput, type StemworkError } from '../../engine/errors.js'

/** The error for a damaged file. `what` is a sentence that says what is wrong; what to do is appended. */
export function damagedFile(what: string, cause?: unknown): StemworkError {
  return badInput('decode_failed', `${what} Send a complete copy of the file.`, cause)
}
