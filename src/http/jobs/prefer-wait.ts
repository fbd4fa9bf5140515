import { isTerminal, type JobRecord } from '../../core/engine/job/job.js'
import type { RequestHeaders } from '../routing/api-request.js'
import type { KeyedCall } from '../routing/call.js'
import { permit } from '../routing/permission.js'
import { Problem } from '../routing/problem.js'

const maxWaitSeconds = 60

/** Seconds that the client prefers to wait (`Prefer: wait=n`, RFC 7240), at most 60; `undefined` if not given. */
export function preferredWait(headers: RequestHeaders): number | undefined {
  const match = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,9})"?\s*(?=$|[,;])/i.exec(headers.get('prefer') ?? '')
  return match ? Math.min(Number(match[1]), maxWaitSeconds) : undefined
}

/**
 * Returns the job when it ends or the time is up, whichever comes first; `undefined` if it was deleted meanwhile. An
 * application with too many waiting requests gets the job at once: waiting is a preference, not a promise.
 *
 * @throws Problem `UNAUTHORIZED` if the key ends meanwhile: the job has links to its results.
 */
export async function waitForEnd(call: KeyedCall, job: JobRecord, seconds: number): Promise<JobRecord | undefined> {
  const app = call.caller.id
  if (!call.service.watch.hasRoom(app)) return job
  call.headers['preference-applied'] = `wait=${seconds}`
  if (isTerminal(job) || seconds === 0) return job
  call.endTurn?.()
  const time = new AbortController()
  const timer = setTimeout(() => time.abort(), seconds * 1000)
  const permission = permit(call)
  const signal = AbortSignal.any([time.signal, call.request.signal, permission.signal])
  try {
    for await (const seen of call.service.watch.follow(job.id, { app, signal })) {
      if (typeof seen === 'object' && isTerminal(seen)) return seen
    }
  } finally {
    clearTimeout(timer)
    permission.release()
  }
  if (permission.signal.aborted)
    throw new Problem('UNAUTHORIZED', 'The key ended while this request waited. Send it again with a valid key.')
  return call.service.engine.get(job.id, { app })
}
