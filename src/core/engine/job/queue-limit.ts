import { StemworkError } from '../errors.js'

/** Thrown by a store when the application already has `maxQueued` queued jobs. */
export function queueFull(maxQueued: number): StemworkError {
  return new StemworkError(
    'QUEUE_FULL',
    `No more jobs of this application may wait: the limit is ${maxQueued}. Wait for some to finish, then submit again.`,
    { retryable: true },
  )
}

export function alreadyExists(id: string): StemworkError {
  return new StemworkError('ALREADY_EXISTS', `A job with the id ${id} already exists. Give each job its own id.`)
}
