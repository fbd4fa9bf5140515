import type { Job } from '../../client/client.js'

/** Whether sending the same song again can help: an unusable file stays unusable. */
export function canRepeat({ status, error }: Job): boolean {
  return status === 'SUCCEEDED' || (error !== null && (error.code !== 'BAD_INPUT' || error.reason === 'upload_missing'))
}

/** Length of the song in seconds, if the workflow reports it. */
export function durationOf({ details }: Job): number | undefined {
  return typeof details?.seconds === 'number' ? details.seconds : undefined
}
