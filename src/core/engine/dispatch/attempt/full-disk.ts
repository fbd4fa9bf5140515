import { codeOf, internalError, StemworkError } from '../../errors.js'

const fullCodes = ['ENOSPC', 'EDQUOT']
/** Bounds the search, because chains of causes can be circular. */
const maxDepth = 8

/**
 * Returns the error of an attempt; if a full disk caused it, with a cause that explains this to the operator. The
 * message to clients stays the same. Stores report a full disk themselves.
 */
export function explainFullDisk(error: unknown, directory: string): unknown {
  const full = fullDisk(error)
  if (!full) return error
  const text =
    `A disk is full, probably the one with the files of running jobs (${directory}). Free some space, or ` +
    'move that folder to another disk: scratchDirectory of the engine, --data or TMPDIR of the command line.'
  const cause = new Error(text, { cause: full })
  if (!StemworkError.is(error)) return internalError(cause)
  const { code, message, reason, retryable, details } = error
  return new StemworkError(code, message, { reason, retryable, details, cause })
}

/** Finds the error of a full disk that ended the attempt, if any. */
export function fullDisk(error: unknown): Error | undefined {
  if (StemworkError.is(error) && error.code !== 'INTERNAL_ERROR') return undefined
  let cause = error
  for (let depth = 0; depth < maxDepth && cause instanceof Error; depth++, cause = cause.cause)
    if (fullCodes.includes(codeOf(cause))) return cause
  return undefined
}
