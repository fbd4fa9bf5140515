import { type StemworkError, storeUnavailable } from '../../../core/engine/errors.js'

/** Describes a failed file operation for operators. Paths stay in the cause. */
export function storageError(attempted: string, cause: unknown): StemworkError {
  const code = codeOf(cause)
  return storeUnavailable(`Could not ${attempted}: ${explanations[code] ?? `the file system answered ${code}.`}`, {
    retryable: true,
    cause,
    details: { code },
  })
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

export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'an unknown error'
}
