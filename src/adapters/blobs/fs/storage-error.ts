import { codeOf, type StemworkError, storeUnavailable } from '../../../core/engine/errors.js'

/** Describes a failed file operation for operators. Paths stay in the cause. */
export function storageError(attempted: string, cause: unknown): StemworkError {
  const code = codeOf(cause)
  const explanation = explanations[code] ?? `the file system answered ${code}. Check the disk of the blob folder.`
  return storeUnavailable(`Could not ${attempted}: ${explanation}`, { retryable: true, cause, details: { code } })
}

/** Like `storageError` for a failed call of the system; other errors, as of an abort, stay as they are. */
export function failureOf(attempted: string, error: unknown): unknown {
  return error instanceof Error && 'syscall' in error ? storageError(attempted, error) : error
}

const explanations: Record<string, string> = {
  ENOSPC: 'the disk is full. Free some space, then try again.',
  EDQUOT: 'the disk quota is used up. Free some space, then try again.',
  EACCES: 'the process may not use the blob folder. Check its owner and permissions.',
  EPERM:
    'the process may not do this in the blob folder. Check its owner and permissions, and that its file system has ' +
    'hard links.',
  EROFS: 'the file system is read-only.',
  EMFILE: 'the process has too many open files. Raise its limit.',
}

export function isAbsent(error: unknown): boolean {
  const code = codeOf(error)
  return code === 'ENOENT' || code === 'ENOTDIR'
}
