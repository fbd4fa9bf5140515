import type { JobRecord } from '../../job/job.js'
import type { Used } from '../../job/ledger.js'
import type { Usage } from '../../job/quota.js'
import type { InputFile, Runner } from '../../ports/runner.js'

/**
 * Usage of an attempt, for the ledger and, if the job has one, for the quota: bytes of its inputs and, after a success,
 * the length of the audio (the workflow's detail `seconds`).
 */
export function usageOf(
  { metered }: Pick<JobRecord, 'metered'>,
  inputs: Readonly<Record<string, InputFile>>,
  { details = {}, processorSeconds = 0 }: { details?: Record<string, unknown>; processorSeconds?: number } = {},
): { usage?: Partial<Usage>; used: Used } {
  const bytes = Object.values(inputs).reduce((sum, file) => sum + file.bytes, 0)
  const audioSeconds = secondsOf(details)
  return { used: { bytes, audioSeconds, processorSeconds }, ...(metered ? { usage: { bytes, audioSeconds } } : {}) }
}

/** Counts the processor time of the runs of an attempt. */
export class ProcessorTime {
  readonly #runs: number[] = []

  get used(): { processorSeconds: number } {
    return { processorSeconds: this.#runs.reduce((sum, seconds) => sum + seconds, 0) }
  }

  /** Wraps a runner so that its runs are counted. */
  of(runner: Runner): Runner {
    return {
      ...runner,
      run: (order, options) => {
        const index = this.#runs.push(0) - 1
        return runner.run(order, { ...options, onUse: (seconds) => (this.#runs[index] = seconds) })
      },
    }
  }
}

/** Length of the audio. For a composition, the largest of its steps', because all worked on the same song. */
function secondsOf({ seconds, steps }: Record<string, unknown>): number {
  if (typeof seconds === 'number' && Number.isFinite(seconds) && seconds > 0) return seconds
  if (typeof steps !== 'object' || steps === null) return 0
  return Math.max(0, ...Object.values(steps).map((details) => secondsOf((details ?? {}) as Record<string, unknown>)))
}
