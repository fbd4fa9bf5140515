import { z } from 'zod'
import { StemworkError } from '../errors.js'
import { invalidParams } from '../job/field-issues.js'
import { type LedgerEntry, ledgerGroups, type LedgerTotal } from '../job/ledger.js'
import { dayOf } from '../job/quota.js'
import type { JobStore, Ledger } from '../ports/job-store.js'
import { checkInput } from '../workflow/check-input.js'

const time = z.number().int().nonnegative()
const range = { from: time, to: time, app: z.string().min(1).optional() }
const totalsSchema = z.strictObject({ ...range, groupBy: z.array(z.enum(ledgerGroups)).default([]) })
const entriesSchema = z.strictObject({
  ...range,
  limit: z.int().min(1).max(10_000).default(1000),
  after: z.object({ endedAt: z.number(), id: z.string() }).optional(),
})

/** Times in epoch milliseconds; the UTC days that contain them are included. */
export type UsageTotalsQuery = z.input<typeof totalsSchema>
export type UsageEntriesQuery = z.input<typeof entriesSchema>

/** See `JobEngine.usageTotals`. */
export async function usageTotals(jobs: JobStore, query: UsageTotalsQuery): Promise<LedgerTotal[]> {
  const { groupBy, ...given } = checked(totalsSchema, query, 'usageTotals')
  const totals = await ledgerOf(jobs).totals(daysOf(given), groupBy)
  return totals.map((total) => {
    const { audioSeconds, processorSeconds } = total
    return { ...total, audioSeconds: inMicroseconds(audioSeconds), processorSeconds: inMicroseconds(processorSeconds) }
  })
}

/** Removes the rounding error of additions, which no bill should show: 0.3 instead of 0.30000000000000004. */
const inMicroseconds = (seconds: number) => Math.round(seconds * 1e6) / 1e6

/** See `JobEngine.usageEntries`. */
export async function usageEntries(jobs: JobStore, query: UsageEntriesQuery): Promise<LedgerEntry[]> {
  const { limit, after, ...given } = checked(entriesSchema, query, 'usageEntries')
  return await ledgerOf(jobs).entries({ ...daysOf(given), limit, after })
}

function daysOf({ from, to, app }: { from: number; to: number; app?: string }) {
  return { fromDay: dayOf(from), toDay: dayOf(to), app }
}

function ledgerOf({ ledger }: JobStore): Ledger {
  if (ledger) return ledger
  throw new StemworkError('NOT_FOUND', 'This job store keeps no usage ledger. Use a store of the package.')
}

function checked<Schema extends z.ZodType>(schema: Schema, query: unknown, method: string): z.output<Schema> {
  const result = checkInput(schema, query)
  if (result.success) return result.data
  throw invalidParams(`engine.${method}`, result.issues)
}
