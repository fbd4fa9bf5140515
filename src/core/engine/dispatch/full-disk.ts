import { internalError, StemworkError } from '../errors.js'

const fullCodes = ['ENOSPC', 'EDQUOT']

/** The error of an attempt, with words for the operator if the disk of `directory` is full. Stores explain a full disk themselves. */
export function explainFullDisk(error: unknown, directory: string): unknown {
  if (StemworkError.is(error) && error.code !== 'INTERNAL_ERROR') return error
  const full = fullDisk(error)
  if (!full) return error
  const text = `The disk with the files of running jobs (${directory}) is full. Free some space, or set scratchDirectory to a folder on another disk.`
  return internalError(new Error(text, { cause: full }), StemworkError.is(error) ? error.details : {})
}

function fullDisk(error: unknown): Error | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (fullCodes.includes(String((cause as NodeJS.ErrnoException).code))) return cause
  return undefined
}
