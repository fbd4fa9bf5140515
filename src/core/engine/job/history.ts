import { z } from 'zod'
import { inOneLine } from './error-text.js'

const fields = z.object({
  /** The token of its claim: 1 for the first. */
  token: z.number().int().positive(),
  worker: z.string(),
  startedAt: z.number(),
  /** Null while the attempt runs. */
  endedAt: z.number().nullable(),
  /**
   * `requeued`: it failed, and another attempt follows. `handed_back`: its worker was stopped. `lapsed`: its worker was
   * lost. `suspended`: it waits for a time, an event or a worker with the labels that a step needs. `preempted`: it
   * gave way to another application's job.
   */
  outcome: z.enum(['running', 'succeeded', 'failed', 'requeued', 'handed_back', 'lapsed', 'suspended', 'preempted']),
  /** Why the attempt failed, in one line, for operators only: the text may contain paths and addresses. */
  reason: z.string().nullable(),
})
export const pastAttemptSchema = fields.loose() as unknown as z.ZodType<PastAttempt>
/** One claim of a job. */
export type PastAttempt = z.infer<typeof fields>

/** Attempts of this number add at most 5 kB to a record. */
export const maxAttemptsKept = 10
const maxReasonLength = 400

type History = readonly PastAttempt[]

/** Adds an attempt that has started. An earlier attempt without an end was lost with its lease, at `lostAt`. */
export function withAttempt(
  history: History,
  begun: Pick<PastAttempt, 'token' | 'worker' | 'startedAt'>,
  lostAt: number,
): PastAttempt[] {
  // The spread comes last: V8 takes 1.5 µs to add properties after one, and every claim runs this.
  const attempt: PastAttempt = { endedAt: null, outcome: 'running', reason: null, ...begun }
  return [...withEnd(history, lostAt, 'lapsed'), attempt].slice(-maxAttemptsKept)
}

/** Ends the attempt that is open. @param failure the text of the error, with stacks */
export function withEnd(
  history: History,
  endedAt: number,
  outcome: PastAttempt['outcome'],
  failure?: string,
): PastAttempt[] {
  const line = failure === undefined ? null : inOneLine(failure)
  const reason = line && line.length > maxReasonLength ? `${line.slice(0, maxReasonLength)}...` : line
  return history.map((attempt) => (attempt.endedAt === null ? { ...attempt, endedAt, outcome, reason } : attempt))
}
