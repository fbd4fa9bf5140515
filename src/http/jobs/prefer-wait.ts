import { isTerminal, type JobRecord } from '../../core/engine/job/job.js'
import type { RequestHeaders } from '../routing/api-request.js'
import type { KeyedCall } from '../routing/call.js'

const maxWaitSeconds = 60

/** Seconds that the client prefers to wait (`Prefer: wait=n`, RFC 7240), at most 60; `undefined` if not given. */
export function preferredWait(headers: RequestHeaders): number | undefined {
  const match = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,9})"?\s*(?=$|[,;])/i.exec(headers.get('prefer') ?? '')
  return match ? Math.min(Number(match[1]), maxWaitSeconds) : undefined
}

/**
 * The job when it has ended or the time is up, whichever comes first; `undefined` if it was deleted meanwhile. An
 * application with too many waiting requests gets the job at once: waiting is a preference, not a promise.
 */
export async function waitForEnd(call: KeyedCall, job: JobRecord, seconds: number): Promise<JobRecord | undefined> {
  const app = call.caller.id
  if (!call.service.watch.hasRoom(app)) return job
  call.headers['preference-applied'] = `wait=${seconds}`
  if (isTerminal(job) || seconds === 0) return job
  const time = new AbortController()
  const timer = setTimeout(() => time.abort(), seconds * 1000)
  const signal = AbortSignal.any([time.signal, call.request.signal])
  try {
    for await (const seen of call.service.watch.follow(job.id, { app, signal })) {
      if (typeof seen === 'object' && isTerminal(seen)) return seen
    }
  } finally {
    clearTimeout(timer)
  }
  return call.service.engine.get(job.id, { app })
}
