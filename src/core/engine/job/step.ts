import { z } from 'zod'

/** Restricted because file names contain the names of steps. */
export const stepNameSchema = z
  .string()
  .regex(/^[A-Za-z][A-Za-z0-9_-]{0,99}$/, 'must begin with a letter and have letters, digits, "-" and "_", at most 100')
/** Bounds the job's record, which contains the steps and is rewritten by every heartbeat. */
export const maxSteps = 200
/** Most files of all steps of a job together. */
export const maxStepFiles = 1_000
/** Longest return value of a step, besides files. */
export const maxValueCharacters = 1_000_000
/** Longest return value in the job's record; longer ones are stored beside the step's files. */
export const maxRecordedCharacters = 1_000
/** Longest value of one event, and of all events of a job together. */
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
  /** Number of tries; 0 for an event that arrived before its wait, of which only the name and value are known. */
  attempts: z.number().int().nonnegative(),
  /** When a wait ends. */
  until: z.number().nullable(),
  /** The return value; removed once the job has succeeded. */
  value: z.unknown(),
  /** Blob key of the return value, if it is too long for the record. */
  valueKey: z.string().optional(),
  /** The step's files by name: keys in the blob store, where the files stay until the job has ended. */
  files: z.record(z.string(), z.object({ key: z.string(), bytes: z.number().int().nonnegative() })),
  /** Why the last try failed, for clients. */
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
})
/** A step of a workflow, as kept in the job's record. */
export type StepRecord = z.infer<typeof fields>
/** A step without its return value and files. */
export const stepStateSchema = fields.omit({ value: true, valueKey: true, files: true })
export const stepRecordSchema = fields.loose() as unknown as z.ZodType<StepRecord>

type Steps = readonly StepRecord[]

/** The steps with this one added or replaced. An event that arrived before its wait began is kept. */
export function withStep(steps: Steps, step: StepRecord): StepRecord[] {
  const known = steps.find(({ name }) => name === step.name)
  if (!known) return [...steps, step]
  if (known.state === 'done' && step.state === 'waiting') return [...steps]
  return steps.map((each) => (each === known ? step : each))
}

/** The steps with an event that a host sent; `undefined` if its step has ended, or the record has no room for it. */
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

/** When a job that waits for these steps may continue: now if one has ended, otherwise at the end of the first wait. */
export function wakeTime(steps: Steps, names: readonly string[], now: number): number {
  const awaited = steps.filter(({ name }) => names.includes(name))
  if (awaited.length === 0 || awaited.some(({ state }) => state !== 'waiting')) return now
  return Math.max(now, Math.min(...awaited.map(({ until }) => until ?? Infinity)))
}
