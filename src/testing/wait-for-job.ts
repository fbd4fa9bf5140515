import type { JobEngine } from '../core/engine/engine.js'
import { StemworkError } from '../core/engine/errors.js'
import type { JobRecord } from '../core/engine/job/job.js'
import { longestTimerMs } from '../core/engine/workflow/policy.js'

export interface WaitForJobOptions {
  /** How long to wait, in milliseconds. Default: 10,000. */
  timeoutMs?: number
  /** Ends the wait early, with its own reason. */
  signal?: AbortSignal
}

/**
 * Resolves with the job once it has ended, be it SUCCEEDED or FAILED. It looks once and then listens to the engine's
 * events, so the job must run in this process, by `engine.start()` or `engine.run()`.
 *
 * @example
 * const { job } = await engine.submit({
 *   app: 'test',
 *   workflow: 'service/size',
 *   params: {},
 *   uploads: { inputUrl: key },
 * })
 * expect(await waitForJob(engine, job.id)).toMatchObject({ status: 'SUCCEEDED' })
 * @throws StemworkError `NOT_FOUND` if there is no such job or it is deleted meanwhile; `TIMEOUT` with the state that
 * it was left in.
 */
export async function waitForJob(
  engine: Pick<JobEngine, 'get' | 'on' | 'off'>,
  id: string,
  { timeoutMs = 10_000, signal }: WaitForJobOptions = {},
): Promise<JobRecord> {
  signal?.throwIfAborted()
  const waiting = new AbortController()
  try {
    return await new Promise<JobRecord>((resolve, reject) => {
      const ended = ({ job }: { job: JobRecord }) => job.id === id && resolve(job)
      const deleted = ({ job }: { job: JobRecord }) =>
        job.id === id && reject(new StemworkError('NOT_FOUND', `Job ${id} was deleted before it ended.`))
      const late = () => void describe(engine, id, timeoutMs).then(reject, reject)
      const timer = setTimeout(late, Math.min(timeoutMs, longestTimerMs))
      const abort = () => reject(signal?.reason as Error)
      engine.on('job.succeeded', ended).on('job.failed', ended).on('job.deleted', deleted)
      signal?.addEventListener('abort', abort, { once: true })
      waiting.signal.addEventListener('abort', () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', abort)
        engine.off('job.succeeded', ended).off('job.failed', ended).off('job.deleted', deleted)
      })
      // After the listeners were added, so that a job that ends meanwhile is not missed.
      engine.get(id).then((job) => {
        if (!job) reject(new StemworkError('NOT_FOUND', `There is no job ${id}.`))
        else if (job.status === 'SUCCEEDED' || job.status === 'FAILED') resolve(job)
      }, reject)
    })
  } finally {
    waiting.abort()
  }
}

async function describe(engine: Pick<JobEngine, 'get'>, id: string, timeoutMs: number): Promise<StemworkError> {
  const job = await engine.get(id)
  const advice =
    job?.status === 'QUEUED'
      ? 'Call engine.start() or engine.run() in this process, or allow more time'
      : 'Allow more time'
  return new StemworkError(
    'TIMEOUT',
    `Job ${id} has not ended within ${timeoutMs} ms: it is ` +
      `${job?.status ?? 'gone'}${job?.stage ? ` in stage "${job.stage}"` : ''}. ${advice} with timeoutMs.`,
    { retryable: true },
  )
}
