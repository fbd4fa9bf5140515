import { badInput, type StemworkError } from '../../engine/errors.js'

/** The client's error for a file that cannot be read as what it is: what is wrong with it, as a sentence, and what to do. */
export function damagedFile(what: string, cause?: unknown): StemworkError {
  return badInput('decode_failed', `${what} Send a whole copy of it.`, cause)
}
