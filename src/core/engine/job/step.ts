import { z } from 'zod'

/** Names of steps are parts of file names. */
export const stepNameSchema = z
  .string()
  .regex(/^[A-Za-z][A-Za-z0-9_-]{0,99}$/, 'must begin with a letter and have letters, digits, "-" and "_", at most 100')
/** Steps are kept in the job's record, which every heartbeat rewrites, so only short return values are kept there. */
export const maxSteps = 200
/** Files of all steps of a job. */
export const maxStepFiles = 1_000
/** What a step may return, besides files. */
export const maxValueCharacters = 1_000_000
/** Longer values lie beside the step's files. */
export const maxRecordedCharacters = 1_000
/** In one event, and in all events of a job. */
export const maxEventCharacters = 16_384
const maxEventsCharacters = 65_536

const fields = z.object({
  name: stepNameSchema,
  /** Version of the workflow, or of the work in a composition. Results of another version are ignored. */
  version: z.string(),
  /** `waiting`: for a time or an event. */
  state: z.enum(['done', 'failed', 'waiting']),
  startedAt: z.number(),
  endedAt: z.number().nullable(),
  /** How often it was tried; 0 for an event that came before its wait, of which nothing is known but its name. */
  attempts: z.number().int().nonnegative(),
  /** When a wait is over. */
  until: z.number().nullable(),
  /** What it returned, until its job has succeeded. */
  value: z.unknown(),
  /** Its blob key instead, if it is long. */
  valueKey: z.string().optional(),
  /** Its files by name: keys in the blob store, where they stay until the job has ended. */
  files: z.record(z.string(), z.object({ key: z.string(), bytes: z.number().int().nonnegative() })),
  /** Why its last try failed, for clients. */
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
})
/** What a job's record holds of a step of its workflow. */
export type StepRecord = z.infer<typeof fields>
/** Without what it returned. */
export const stepStateSchema = fields.omit({ value: true, valueKey: true, files: true })
export const stepRecordSchema = fields.loose() as unknown as z.ZodType<StepRecord>

type Steps = readonly StepRecord[]

/** The steps with this one added or replaced. An event may have come before its wait began, and stays. */
export function withStep(steps: Steps, step: StepRecord): StepRecord[] {
  const known = steps.find(({ name }) => name === step.name)
  if (!known) return [...steps, step]
  if (known.state === 'done' && step.state === 'waiting') return [...steps]
  return steps.map((each) => (each === known ? step : each))
}

/** The steps with an event that a host sent; `undefined` if this step is over, or there is no room for it. */
export function withEvent(steps: Steps, name: string, value: unknown, now: number): StepRecord[] | undefined {
  const known = steps.find((step) => step.name === name)
  if (known ? known.state !== 'waiting' : steps.length >= maxSteps) return undefined
  const events = steps.filter((step) => step.until !== null || step.attempts === 0).map((step) => step.value)
  if (JSON.stringify([...events, value]).length > maxEventsCharacters) return undefined
  const event: StepRecord = {
    ...(known ?? { name, version: '', startedAt: now, attempts: 0, until: null, files: {}, error: null }),
    state: 'done',
    endedAt: now,
    value: { event: value },
  }
  return withStep(steps, event)
}

/** When a job that waits for these steps may go on: now if one of them is over, else when the first wait ends. */
export function wakeTime(steps: Steps, names: readonly string[], now: number): number {
  const awaited = steps.filter(({ name }) => names.includes(name))
  if (awaited.length === 0 || awaited.some(({ state }) => state !== 'waiting')) return now
  return Math.max(now, Math.min(...awaited.map(({ until }) => until ?? Infinity)))
}
