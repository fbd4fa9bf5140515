import { badAnswer, ClientError, networkError } from './client-error.js'
import type { Connection, RequestOptions } from './connection.js'
import { serverEvents } from './event-stream.js'
import type { Job } from './job.js'
import { backOff, pause } from './pause.js'

export interface FollowOptions extends RequestOptions {
  /** A job that is new or has changed. */
  onJob(job: Job): void
  onDeleted?(id: string): void
  /** `connected`: from now on no change is missed, so list the jobs now. `reconnecting`: changes may be missed. */
  onState?(state: 'connected' | 'reconnecting'): void
}

/** The service sends a sign of life every 15 s. */
const silenceMs = 35_000
const reconnect = { firstMs: 500, longestMs: 5000 }

/** @throws ClientError for a rejected key and similar errors; the signal's reason */
export async function followJobs(connection: Connection, options: FollowOptions): Promise<never> {
  const { signal } = options
  for (let turn = 0; ; turn++) {
    const watch = { wasReady: false }
    try {
      await followOnce(connection, options, () => (watch.wasReady = true))
    } catch (error) {
      signal?.throwIfAborted()
      if (ClientError.is(error) && error.status >= 400 && error.status < 500 && error.status !== 429) throw error
    }
    options.onState?.('reconnecting')
    if (watch.wasReady) turn = 0
    await pause(backOff(turn, reconnect), signal)
  }
}

async function followOnce(
  connection: Connection,
  { onJob, onDeleted, onState, signal }: FollowOptions,
  onReady: () => void,
): Promise<void> {
  const stop = new AbortController()
  const onAbort = () => stop.abort(signal?.reason)
  signal?.addEventListener('abort', onAbort, { once: true })
  const watchdog = new Watchdog(() => stop.abort())
  try {
    signal?.throwIfAborted()
    const response = await connection.send('/job/events', {
      headers: { accept: 'text/event-stream' },
      signal: stop.signal,
      // Every try is this function's own, so that its caller hears of each.
      isRepeatable: false,
    })
    if (!response.body || !response.headers.get('content-type')?.startsWith('text/event-stream')) {
      await response.body?.cancel()
      throw badAnswer(502, 'it is no event stream')
    }
    for await (const { event, data } of serverEvents(response.body)) {
      watchdog.reset()
      if (event === 'ready') {
        onReady()
        onState?.('connected')
      } else if (event === 'job') onJob(JSON.parse(data) as Job)
      else if (event === 'deleted') onDeleted?.((JSON.parse(data) as { id: string }).id)
    }
  } catch (error) {
    signal?.throwIfAborted()
    throw ClientError.is(error) ? error : networkError(error)
  } finally {
    watchdog.stop()
    signal?.removeEventListener('abort', onAbort)
    stop.abort()
  }
}

/** Ends a stream that has shown no sign of life for too long. */
class Watchdog {
  readonly #onSilence: () => void
  #timer: ReturnType<typeof setTimeout>

  constructor(onSilence: () => void) {
    this.#onSilence = onSilence
    this.#timer = setTimeout(onSilence, silenceMs)
  }

  reset(): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(this.#onSilence, silenceMs)
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}
