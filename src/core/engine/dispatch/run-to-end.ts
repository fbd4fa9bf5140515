import { setTimeout as delay } from 'node:timers/promises'
import type { JobEvents } from '../events.js'
import { isTerminal, type JobRecord } from '../job/job.js'
import type { Dispatcher } from './dispatcher.js'
import type { Sweep } from './sweep/sweep.js'
import type { SharedParts } from '../engine-parts.js'

const firstWaitMs = 25
const longestWaitMs = 1_000
const steps = ['job.requeued', 'job.succeeded', 'job.failed', 'job.deleted'] as const

interface RunToEndPorts extends Pick<SharedParts, 'jobs' | 'events'> {
  dispatcher: Dispatcher
  sweep: Sweep
}

/**
 * Runs a job attempt by attempt until it has ended, and waits for attempts of other workers. `undefined`: the job does
 * not exist (any more), or, without an id, there is nothing to run.
 *
 * @throws the signal's reason; StemworkError `SHUTTING_DOWN`.
 */
export async function runToEnd(
  { jobs, events, dispatcher, sweep }: RunToEndPorts,
  id: string | undefined,
  { signal, closing }: { signal: AbortSignal | undefined; closing: AbortSignal },
): Promise<JobRecord | undefined> {
  const ended = signal ? AbortSignal.any([signal, closing]) : closing
  ended.throwIfAborted()
  let job = await dispatcher.run(id, signal)
  const jobId = id ?? job?.id
  if (jobId === undefined) return undefined
  for (let waitMs = firstWaitMs; ; waitMs = Math.min(2 * waitMs, longestWaitMs)) {
    job ??= await jobs.get(jobId)
    // The job's deadline may pass while it waits, and only a started engine sweeps.
    if (job?.status === 'QUEUED' && job.deadline !== null) job = (await sweep.endUnheld(job)) ?? job
    if (!job || isTerminal(job)) return job
    ended.throwIfAborted()
    await stepOf(jobId, events, waitMs, ended)
    job = await dispatcher.run(jobId, signal)
  }
}

/**
 * Returns when this process has changed the job, or after the given time, because other processes may change it, too.
 */
async function stepOf(jobId: string, events: JobEvents, waitMs: number, ended: AbortSignal): Promise<void> {
  const step = new AbortController()
  const listener = ({ job }: { job: JobRecord }) => {
    if (job.id === jobId) step.abort()
  }
  for (const name of steps) events.on(name, listener)
  try {
    await delay(waitMs, undefined, { signal: AbortSignal.any([step.signal, ended]) })
  } catch {
    // The loop checks the job and the signal.
  } finally {
    for (const name of steps) events.off(name, listener)
  }
}
