import { isTerminal, type JobRecord } from '../../core/engine/job/job.js'
import { type ApiAnswer, empty } from '../routing/answer.js'
import type { KeyedCall } from '../routing/call.js'
import { whilePermitted } from '../routing/permission.js'
import type { JobChange } from '../application-watch.js'
import { pendingJobView } from './job-view.js'
import { receiverView } from './receiver-view.js'
import { type Problem, rateLimited } from '../routing/problem.js'

const reconnectMs = 2000
const lastEventId = 'end'

/**
 * A job as server-sent events: `job` with the whole job at once and at each change (for a waiting job, also each change
 * of its position in the queue), `growing` when more of its results can be read while it runs here, `deleted` if it is
 * deleted. The stream closes after the job's end or deletion, and without an event when the key ends or another
 * application needs the slot.
 */
export function jobEvents(call: KeyedCall, job: JobRecord): ApiAnswer {
  // This response stops an EventSource from reconnecting after the end.
  if (call.request.headers.get('last-event-id') === lastEventId) return empty(204)
  return eventStream(call, (signal) => frames(call, job, signal))
}

/**
 * The changes of all jobs of the caller as server-sent events: `ready` once they are followed, after which none is
 * missed, then `job` with the whole job at each change, `deleted` with its id, and `webhook-receiver` when this process
 * disables one. It ends, without an event, when the key does, when another application needs the slot, or when the
 * client falls too far behind.
 */
export function allJobEvents(call: KeyedCall): ApiAnswer {
  return eventStream(call, (signal) => allFrames(call, signal))
}

type Frames = AsyncGenerator<Uint8Array, void, undefined>

function eventStream(call: KeyedCall, source: (signal: AbortSignal) => Frames): ApiAnswer {
  const { watch, options } = call.service
  if (!watch.hasRoom(call.caller.id)) throw tooManyFollowers(call)
  const headers = {
    'content-type': 'text/event-stream; charset=utf-8',
    // A host that compressed events would hold them back until a block is full.
    'cache-control': 'no-store, no-transform',
    'x-accel-buffering': 'no',
  }
  if (call.request.method === 'HEAD') return empty(200, headers)
  return { status: 200, headers, body: { source: whilePermitted(call, source), idleMs: options.limits.idleMs } }
}

export function tooManyFollowers(call: KeyedCall): Problem {
  const { waitingRequests, allWaitingRequests } = call.service.options.limits
  return rateLimited(
    `At most ${waitingRequests} requests of an application, and ${allWaitingRequests} in all, may wait for or follow ` +
      'jobs at a time. Close some, or poll the status instead.',
    10,
  )
}

async function* allFrames(call: KeyedCall, signal: AbortSignal): Frames {
  const { heartbeatMs } = call.service.options.limits
  const { caller, service } = call
  for await (const change of service.watch.followAll({ app: caller.id, signal, idleMs: heartbeatMs })) {
    switch (change.kind) {
      case 'job':
      case 'deleted':
      case 'receiver': {
        const endTurn = await service.turns.next(caller.id, signal)
        yield await sharedFrame(change, call).finally(endTurn)
        break
      }
      case 'ready':
        yield frame(`retry: ${reconnectMs}\nevent: ready\ndata: {}`)
        break
      case 'idle':
        yield frame(': still there')
        break
      default:
        change satisfies never
    }
  }
}

/** Frames of changes, with the service's address as the follower sees it, which is part of the links. */
const sharedFrames = new WeakMap<JobChange, { baseUrl: string; made: Promise<Uint8Array> }>()

/** The frame of a change, made once for all followers that use the address of the first one. */
function sharedFrame(change: JobChange, call: KeyedCall): Promise<Uint8Array> {
  const { baseUrl } = call
  const frame = sharedFrames.get(change) ?? { baseUrl, made: changeFrame(change, call) }
  sharedFrames.set(change, frame)
  // Cached for one address only: clients can use any number, and a frame is kept until its last follower has read it.
  return frame.baseUrl === baseUrl ? frame.made : changeFrame(change, call)
}

async function changeFrame(change: JobChange, call: KeyedCall): Promise<Uint8Array> {
  switch (change.kind) {
    case 'job':
      return frame(`event: job\ndata: ${JSON.stringify(await pendingJobView(change.job, call))}`)
    case 'deleted':
      return frame(`event: deleted\ndata: ${JSON.stringify({ id: change.id })}`)
    case 'receiver':
      return frame(`event: webhook-receiver\ndata: ${JSON.stringify(receiverView(change.receiver))}`)
    default:
      return change satisfies never
  }
}

async function* frames(call: KeyedCall, job: JobRecord, signal: AbortSignal): Frames {
  const { id } = job
  // Not as a frame of its own, which some clients take for a message.
  let retry = `retry: ${reconnectMs}\n`
  let shown = job
  let sent = ''
  let grown = ''
  let ended = false
  const { heartbeatMs } = call.service.options.limits
  const follow = { app: call.caller.id, signal, idleMs: heartbeatMs }
  for await (const seen of call.service.watch.follow(id, follow)) {
    if (seen === 'dropped') return
    if (seen !== 'idle') shown = seen
    const endTurn = await call.service.turns.next(call.caller.id, signal)
    // A job that waits does not change, but its position in the queue does.
    const text = JSON.stringify(await pendingJobView(shown, call).finally(endTurn))
    if (seen === 'idle' && (shown.status !== 'QUEUED' || text === sent)) {
      yield frame(': still there')
      continue
    }
    sent = text
    ended = isTerminal(shown)
    yield frame(`${retry}${ended ? `id: ${lastEventId}\n` : ''}event: job\ndata: ${text}`)
    retry = ''
    const growing = JSON.stringify(await growingResults(call, shown))
    if (growing === '{}' || growing === grown) continue
    grown = growing
    yield frame(`event: growing\ndata: ${growing}`)
  }
  if (!ended && !signal.aborted) yield frame(`id: ${lastEventId}\nevent: deleted\ndata: ${JSON.stringify({ id })}`)
}

function frame(text: string): Uint8Array {
  return Buffer.from(`${text}\n\n`)
}

/** Readable bytes and URL of each result of a job that runs here, by output name. */
async function growingResults(
  call: KeyedCall,
  job: JobRecord,
): Promise<Record<string, { bytes: number; url: string }>> {
  const { engine } = call.service
  const workflow = job.status === 'STARTED' && engine.isRunningHere(job.id) && engine.workflows.get(job.workflow)
  if (!workflow) return {}
  const found: Record<string, { bytes: number; url: string }> = {}
  for (const name of Object.keys(workflow.outputs(workflow.params.parse(job.params) as Record<string, unknown>))) {
    const result = await engine.growingResult(job, name)
    if (!result) continue
    await result.close()
    const url = `${call.baseUrl}/job/${job.id}/growing/${encodeURIComponent(name)}`
    if (result.bytes > 0) found[name] = { bytes: result.bytes, url }
  }
  return found
}
