import { z } from 'zod'
import { StemworkError } from '../errors.js'

/** Limits of an application's usage per day, which ends at midnight UTC. Omitted values are unlimited. */
export const quotaSchema = z.strictObject({
  jobs: z.number().int().nonnegative().optional().describe('Jobs that are created or retried.'),
  audioMinutes: z.number().nonnegative().optional().describe('Minutes of audio of jobs that have succeeded.'),
  bytes: z.number().int().nonnegative().optional().describe('Bytes of the inputs of jobs that have ended.'),
})
export type Quota = z.infer<typeof quotaSchema>

export const limitsSchema = quotaSchema.extend({ maxQueuedJobs: z.number().positive().optional() })
/** Limits of an application's queue and of its usage per day (UTC). Omitted: the default, or unlimited. */
export type Limits = z.infer<typeof limitsSchema>

const figure = z.number().int().nonnegative().nullable().optional()
/** New values of some limits; null restores the default. */
export const limitChangeSchema = z.strictObject({
  maxQueuedJobs: z.number().int().positive().nullable().optional(),
  jobs: figure,
  audioMinutes: z.number().nonnegative().nullable().optional(),
  bytes: figure,
} satisfies Record<keyof Limits, z.ZodType>)
export type LimitChange = z.input<typeof limitChangeSchema>

/** Today's usage of an application. */
export interface Usage {
  jobs: number
  audioSeconds: number
  bytes: number
}

export const dayMs = 24 * 60 * 60 * 1000

/** Days since 1970, in UTC. */
export function dayOf(now: number): number {
  return Math.floor(now / dayMs)
}

/**
 * The error for an application that may add no more jobs. The length of a file is known only after decoding, so
 * accepted jobs are finished, and minutes and bytes are counted at their end.
 */
export function quotaExceeded(quota: Quota, used: Usage, jobs: number, now: number): StemworkError | undefined {
  const resetsAt = new Date((dayOf(now) + 1) * dayMs).toISOString()
  const refused = (what: string, limit: number, usedSoFar: number, unit: string) =>
    new StemworkError(
      'QUOTA_EXCEEDED',
      `The application may use ${limit} ${unit} a day and has used ` +
        `${usedSoFar}${jobs > 1 && what === 'jobs' ? `; these would be ${jobs} more` : ''}. The quota is reset ` +
        `at ${resetsAt}. Submit again then, or ask the operator for a larger quota.`,
      { retryable: true, details: { quota: what, limit, used: usedSoFar, resetsAt } },
    )
  if (quota.jobs !== undefined && used.jobs + jobs > quota.jobs)
    return refused('jobs', quota.jobs, used.jobs, quota.jobs === 1 ? 'job' : 'jobs')
  const minutes = Math.round(used.audioSeconds / 0.6) / 100
  if (quota.audioMinutes !== undefined && used.audioSeconds >= quota.audioMinutes * 60)
    return refused('audioMinutes', quota.audioMinutes, minutes, 'minutes of audio')
  if (quota.bytes !== undefined && used.bytes >= quota.bytes)
    return refused('bytes', quota.bytes, used.bytes, 'bytes of input')
  return undefined
}

export const noUsage: Usage = { jobs: 0, audioSeconds: 0, bytes: 0 }

export function addUsage(a: Usage, b: Partial<Usage>): Usage {
  return {
    jobs: a.jobs + (b.jobs ?? 0),
    audioSeconds: a.audioSeconds + (b.audioSeconds ?? 0),
    bytes: a.bytes + (b.bytes ?? 0),
  }
}
