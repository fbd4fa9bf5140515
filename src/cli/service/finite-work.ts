import type { JobEngine } from '../../core/engine/engine.js'
import { StemworkError } from '../../core/engine/errors.js'
import type { JobRecord } from '../../core/engine/job/job.js'

/**
 * Runs jobs until none is left to claim, several at a time or just one, each to its end, retries included. The signal
 * returns running jobs to the queue. Does the periodic work of a service once, because no other process may be there to
 * do it.
 *
 * @returns the jobs that have ended here
 */
export async function finiteWork(
  engine: JobEngine,
  { once, lanes, signal }: { once: boolean; lanes: number; signal: AbortSignal },
): Promise<JobRecord[]> {
  await engine.ready()
  const ended: JobRecord[] = []
  const work = async () => {
    for (;;) {
      const job = await engine.run(undefined, { signal })
      if (!job) return
      ended.push(job)
      if (once) return
    }
  }
  const results = await Promise.allSettled(Array.from({ length: once ? 1 : lanes }, work))
  const failed = results.find((result) => result.status === 'rejected')
  if (failed && !signal.aborted && !isShuttingDown(failed.reason)) throw failed.reason
  if (!signal.aborted) {
    await engine.sweep()
    await engine.sendWebhooks()
  }
  return ended
}

function isShuttingDown(error: unknown): boolean {
  return StemworkError.is(error) && error.code === 'SHUTTING_DOWN'
}
