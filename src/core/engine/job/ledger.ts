import { z } from 'zod'
import { dayMs, dayOf } from './quota.js'

const amount = z.number().nonnegative()

export const usedSchema = z.object({
  /** Length of the audio, after a success. */
  audioSeconds: amount,
  /** Bytes of the inputs. */
  bytes: amount,
  /**
   * Processor time of the child processes of the last attempt. Work in the host's process is not included, because it
   * cannot be told apart from other work there.
   */
  processorSeconds: amount,
})
/** Usage of a job. */
export type Used = z.infer<typeof usedSchema>

const entryFields = z.object({
  /** The job's id and its number of retries: the same each time that the entry is read or sent. */
  id: z.string(),
  jobId: z.string(),
  app: z.string(),
  workflow: z.string(),
  /** Name of the model, if the workflow reports one. */
  model: z.string().nullable(),
  audioSeconds: amount,
  bytes: amount,
  processorSeconds: amount,
  priority: z.number().int(),
  result: z.enum(['SUCCEEDED', 'FAILED']),
  /** Code of the error of a FAILED job. */
  error: z.string().nullable(),
  /** Reason of the error; absent in entries from before version 0.2. */
  reason: z.string().nullable().optional(),
  /** Milliseconds from the last claim to the end of a SUCCEEDED job; absent in entries from before version 0.2. */
  runMs: amount.nullable().optional(),
  /** Epoch milliseconds, by the store's clock. */
  endedAt: z.number(),
})
export const ledgerEntrySchema = entryFields.loose() as unknown as z.ZodType<LedgerEntry>
/** The usage ledger's entry for one end of a job, written in the same store operation as the end. */
export type LedgerEntry = z.infer<typeof entryFields>

/** Fields of a job's record that its ledger entry uses. */
interface EndedJob {
  id: string
  app: string
  workflow: string
  priority: number
  retries: number
  /** Processor time of earlier attempts. */
  processorSeconds: number
  details: Record<string, unknown>
  status: string
  error: { code: string; reason: string | null } | null
  completedAt: number | null
  history: readonly { startedAt: number }[]
}

/** Makes the ledger entry of a job that has just ended. */
export function ledgerEntry(job: EndedJob, used: Partial<Used> = {}): LedgerEntry {
  const { id, app, workflow, priority, retries, details } = job
  const endedAt = job.completedAt ?? 0
  const isDone = job.status === 'SUCCEEDED'
  const claimedAt = job.history.at(-1)?.startedAt
  return {
    id: `${id}/${retries}`,
    jobId: id,
    app,
    workflow,
    model: modelOf(details),
    audioSeconds: used.audioSeconds ?? 0,
    bytes: used.bytes ?? 0,
    processorSeconds: job.processorSeconds + (used.processorSeconds ?? 0),
    priority,
    result: isDone ? 'SUCCEEDED' : 'FAILED',
    error: job.error?.code ?? null,
    reason: job.error?.reason ?? null,
    runMs: isDone && claimedAt !== undefined ? Math.max(0, endedAt - claimedAt) : null,
    endedAt,
  }
}

function modelOf({ model }: Record<string, unknown>): string | null {
  const { name } = (typeof model === 'object' && model !== null ? model : {}) as { name?: unknown }
  return typeof name === 'string' ? name : null
}

/** The fields by which totals can be grouped. */
export const ledgerGroups = ['day', 'app', 'workflow'] as const
export type LedgerGroup = (typeof ledgerGroups)[number]

/** Days are UTC, counted from 1970 (`dayOf`); both are included. */
export interface LedgerQuery {
  /** The first day. */
  fromDay: number
  toDay: number
  app?: string
}

/** Sums over the ends in a group. Of `day`, `app` and `workflow`, only the grouping fields are present. */
export interface LedgerTotal {
  /** Days since 1970, in UTC. */
  day?: number
  app?: string
  workflow?: string
  jobs: number
  succeeded: number
  audioSeconds: number
  bytes: number
  processorSeconds: number
}

/** The totals of entries in memory, ordered by their groups. */
export function totalsOf(
  entries: Iterable<LedgerEntry>,
  { fromDay, toDay, app }: LedgerQuery,
  groupBy: readonly LedgerGroup[],
): LedgerTotal[] {
  const totals = new Map<string, LedgerTotal>()
  for (const entry of entries) {
    const day = dayOf(entry.endedAt)
    if (day < fromDay || day > toDay || (app !== undefined && entry.app !== app)) continue
    const group = Object.fromEntries(groupBy.map((name) => [name, name === 'day' ? day : entry[name]]))
    const key = JSON.stringify(group)
    const total = totals.get(key) ?? { ...group, jobs: 0, succeeded: 0, audioSeconds: 0, bytes: 0, processorSeconds: 0 }
    total.jobs += 1
    total.succeeded += entry.result === 'SUCCEEDED' ? 1 : 0
    for (const name of ['audioSeconds', 'bytes', 'processorSeconds'] as const) total[name] += entry[name]
    totals.set(key, total)
  }
  return inOrder([...totals.values()])
}

export function inOrder(totals: LedgerTotal[]): LedgerTotal[] {
  const compare = <Value extends string | number>(a: Value | undefined, b: Value | undefined) =>
    a === b || a === undefined || b === undefined ? 0 : a < b ? -1 : 1
  return totals.sort((a, b) => compare(a.day, b.day) || compare(a.app, b.app) || compare(a.workflow, b.workflow))
}

/** A day as `2026-11-24`. */
export function dayText(day: number): string {
  return new Date(day * dayMs).toISOString().slice(0, 10)
}
