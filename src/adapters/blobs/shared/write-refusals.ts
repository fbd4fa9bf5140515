import { StemworkError, storeUnavailable } from '../../../core/engine/errors.js'

/** The refusal of a write with `ifAbsent`. */
export function alreadyExists(key: string): StemworkError {
  return new StemworkError('ALREADY_EXISTS', `A blob with the key ${key} already exists; it was not changed.`)
}

export function folderDeleted(key: string, cause?: unknown): StemworkError {
  return storeUnavailable(`The folder of ${key} was deleted while the blob was being written. Write it again.`, {
    retryable: true,
    cause,
  })
}
