import type { Job } from '../client/client.js'

/** Length of the song in seconds, if the workflow has told it. */
export function durationOf({ details }: Job): number | undefined {
  return typeof details?.seconds === 'number' ? details.seconds : undefined
}
