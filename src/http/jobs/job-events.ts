import { isTerminal, type JobRecord } from '../../core/engine/job/job.js'
import { type ApiAnswer, empty } from '../routing/answer.js'
import { isStillAllowed } from '../routing/authenticate.js'
import type { KeyedCall } from '../routing/call.js'
import { jobView } from './job-view.js'
import { pacedStream } from '../routing/paced-stream.js'
import { Problem } from '../routing/problem.js'

const reconnectMs = 2000
const lastEventId = 'end'

/**
 * A job as server-sent events: `job` with the whole job at once and at each change, then, after the one that shows its end, the
 * stream closes. `deleted` if the job goes away. It also ends, without a word, when the key has ended that asked for it.
 */
export function jobEvents(call: KeyedCall, job: JobRecord): ApiAnswer {
  // The answer that stops an EventSource which reconnects after the end.
  if (call.request.headers.get('last-event-id') === lastEventId) return empty(204)
  const { watch, options } = call.service
  if (!watch.hasRoom(call.caller.id)) {
    throw new Problem(
      'RATE_LIMITED',
      `At most ${options.limits.waitingRequests} requests may wait or follow jobs at a time. Close some, or poll the status instead.`,
      { headers: { 'retry-after': '10' } },
    )
  }
  const headers = {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  }
  if (call.request.method === 'HEAD') return empty(200, headers)
  return { status: 200, headers, body: pacedStream(frames(call, job), options.limits.idleMs) }
}

async function* frames(call: KeyedCall, { id }: JobRecord): AsyncGenerator<Uint8Array, void, undefined> {
  yield frame(`retry: ${reconnectMs}`)
  let ended = false
  const { heartbeatMs } = call.service.options.limits
  let checkedAt = performance.now()
  const follow = { app: call.caller.id, signal: call.request.signal, idleMs: heartbeatMs }
  for await (const seen of call.service.watch.follow(id, follow)) {
    if (performance.now() - checkedAt >= heartbeatMs) {
      checkedAt = performance.now()
      if (!(await isStillAllowed(call.request, call.service, call.caller))) return
    }
    if (seen === 'idle') {
      yield frame(': still there')
      continue
    }
    ended = isTerminal(seen)
    yield frame(`${ended ? `id: ${lastEventId}\n` : ''}event: job\ndata: ${JSON.stringify(await jobView(seen, call))}`)
  }
  if (!ended && !call.request.signal.aborted)
    yield frame(`id: ${lastEventId}\nevent: deleted\ndata: ${JSON.stringify({ id })}`)
}

function frame(text: string): Uint8Array {
  return Buffer.from(`${text}\n\n`)
}
