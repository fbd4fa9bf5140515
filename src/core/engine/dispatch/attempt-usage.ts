import type { JobRecord } from '../job/job.js'
import type { Usage } from '../job/quota.js'
import type { InputFile } from '../ports/runner.js'

/**
 * What an attempt that ends the job has used, for the quota: bytes of its inputs, and of a success the audio, as the workflow tells by its
 * detail `seconds`. Nothing for a job that no quota counts.
 */
export function usageOf(
  { metered }: Pick<JobRecord, 'metered'>,
  inputs: Readonly<Record<string, InputFile>>,
  details: Record<string, unknown> = {},
): { usage?: Partial<Usage> } {
  if (!metered) return {}
  const bytes = Object.values(inputs).reduce((sum, file) => sum + file.bytes, 0)
  return { usage: { bytes, audioSeconds: secondsOf(details) } }
}

/** Of a composition, the longest of its steps: each has worked on the same song. */
function secondsOf({ seconds, steps }: Record<string, unknown>): number {
  if (typeof seconds === 'number' && Number.isFinite(seconds) && seconds > 0) return seconds
  if (typeof steps !== 'object' || steps === null) return 0
  return Math.max(0, ...Object.values(steps).map((details) => secondsOf((details ?? {}) as Record<string, unknown>)))
}
