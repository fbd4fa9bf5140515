import { ClientError } from './client-error.js'
import type { Connection, RequestOptions } from './connection.js'
import { readEvents } from './event-stream.js'
import type { Job } from './job.js'
import { backOff, pause } from './pause.js'

export interface FollowOptions extends RequestOptions {
  /** A job that is new or has changed. */
  onJob(job: Job): void
  onDeleted?(id: string): void
  /** `connected`: from now on no change is missed, so list the jobs now. `reconnecting`: changes may be missed. */
  onState?(state: 'connected' | 'reconnecting'): void
}

const reconnect = { firstMs: 500, longestMs: 5000 }

/** @throws ClientError for a rejected key and similar errors; the signal's reason */
export async function followJobs(connection: Connection, options: FollowOptions): Promise<never> {
  const { signal } = options
  for (let attempt = 0; ; attempt++) {
    const watch = { wasReady: false }
    try {
      // Retried here only, so that the caller hears of each attempt.
      await readEvents(connection, '/job/events', { signal, isRepeatable: false }, ({ event, data }) => {
        if (event === 'ready') {
          watch.wasReady = true
          options.onState?.('connected')
        } else if (event === 'job') options.onJob(JSON.parse(data) as Job)
        else if (event === 'deleted') options.onDeleted?.((JSON.parse(data) as { id: string }).id)
      })
    } catch (error) {
      signal?.throwIfAborted()
      if (ClientError.is(error) && error.status >= 400 && error.status < 500 && error.status !== 429) throw error
    }
    options.onState?.('reconnecting')
    if (watch.wasReady) attempt = 0
    await pause(backOff(attempt, reconnect), signal)
  }
}
