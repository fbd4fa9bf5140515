import type { JobRecord } from '../../job/job.js'
import type { Used } from '../../job/ledger.js'
import type { Usage } from '../../job/quota.js'
import type { InputFile } from '../../ports/runner.js'

/**
 * What the job's last attempt used, for the ledger and, if the job has one, for the quota: bytes of its inputs and,
 * after a success, the length of the audio (the workflow's detail `seconds`).
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

/** For a composition, the longest of its steps: all worked on the same song. */
function secondsOf({ seconds, steps }: Record<string, unknown>): number {
  if (typeof seconds === 'number' && Number.isFinite(seconds) && seconds > 0) return seconds
  if (typeof steps !== 'object' || steps === null) return 0
  return Math.max(0, ...Object.values(steps).map((details) => secondsOf((details ?? {}) as Record<string, unknown>)))
}
