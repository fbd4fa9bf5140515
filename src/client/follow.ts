import { isOutage } from './client-error.js'
import type { Connection, RequestOptions } from './connection.js'
import { eventValue, readEvents } from './event-stream.js'
import type { Job } from './job.js'
import { backOff, pause } from './pause.js'

export interface FollowOptions extends RequestOptions {
  /** Called with each new or changed job. */
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
      // Retried only here, so that the caller is told of each attempt.
      for await (const event of readEvents(connection, '/job/events', { signal, isRepeatable: false })) {
        if (event.event === 'ready') {
          watch.wasReady = true
          options.onState?.('connected')
        } else if (event.event === 'job') options.onJob(eventValue<Job>(event))
        else if (event.event === 'deleted') options.onDeleted?.(eventValue<{ id: string }>(event).id)
      }
    } catch (error) {
      signal?.throwIfAborted()
      if (!isOutage(error)) throw error
    }
    options.onState?.('reconnecting')
    if (watch.wasReady) attempt = 0
    await pause(backOff(attempt, reconnect), signal)
  }
}
