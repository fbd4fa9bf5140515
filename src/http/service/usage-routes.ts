import { z } from 'zod'
import { dayText, type LedgerTotal } from '../../core/engine/job/ledger.js'
import { json, text } from '../routing/answer.js'
import { defineRoute } from '../routing/route.js'

const day = z.iso
  .date('must be a day that exists, such as 2026-11-24')
  .refine((text) => !(Date.parse(text) < 0), 'must not be before 1970-01-01')
  .meta({ examples: ['2026-11-24'] })
const groups = { day: 'day', workflow: 'workflow', application: 'app' } as const
type Group = keyof typeof groups

const amounts = {
  jobs: z.int().describe('Jobs that ended; a failed job that is retried counts again.'),
  succeeded: z.int().describe('Those that SUCCEEDED.'),
  audioSeconds: z.number().describe('Length of their audio.'),
  bytes: z.int().describe('Size of their inputs.'),
  processorSeconds: z.number().describe('Time of the processes that did the work.'),
}

const usageSchema = z
  .object({
    from: day,
    to: day,
    usage: z.array(
      z
        .object({
          day: day.optional(),
          workflow: z.string().optional(),
          application: z.string().optional(),
          ...amounts,
        })
        .meta({ id: 'UsageTotal' }),
    ),
  })
  .meta({ id: 'Usage' })

type UsageRow = z.infer<typeof usageSchema>['usage'][number]

export const usageRoutes = [
  defineRoute({
    route: 'GET /usage',
    operation: 'getUsage',
    summary: 'Get what the application has used',
    description:
      'Sums of the jobs that ended on these days (UTC), kept beyond the jobs. As CSV with `format=csv`, or where ' +
      '`Accept` asks for `text/csv`.',
    query: z
      .strictObject({
        from: day.optional().describe('First day. Default: the first of this month.'),
        to: day.optional().describe('Last day. Default: today.'),
        groupBy: z
          .preprocess(
            (value) => (typeof value === 'string' ? value.split(',') : value),
            z
              .array(z.enum(Object.keys(groups) as [Group, ...Group[]]))
              .max(3)
              .optional(),
          )
          .describe('`day`, `workflow`, `application`, or several of them; may be repeated. Default: one sum.'),
        format: z.enum(['json', 'csv']).optional().describe('Default: json.'),
      })
      .refine(({ from = firstOfMonth(), to }) => to === undefined || to >= from, {
        path: ['to'],
        error: 'must not be before from, which is the first of this month unless given',
      }),
    answer: {
      description: 'The sums, in the order of their groups.',
      schema: usageSchema,
      otherContent: { 'text/csv': { schema: { type: 'string' } } },
    },
    problems: ['NOT_FOUND'],
    async handle(call, { query: { from, to, groupBy = [], format } }) {
      const range = { from: from ?? firstOfMonth(), to: to ?? today() }
      const totals = await call.service.engine.usageTotals({
        from: Date.parse(range.from),
        to: Date.parse(range.to),
        app: call.caller.id,
        groupBy: [...new Set(groupBy)].map((name) => groups[name]),
      })
      const rows = totals.map(usageRow)
      const isCsv = format === 'csv' || (!format && call.request.headers.get('accept')?.startsWith('text/csv') === true)
      if (!isCsv) return json({ ...range, usage: rows })
      return text(usageCsv(rows, groupBy), 'text/csv; charset=utf-8', { 'cache-control': 'no-store' })
    },
  }),
]

function today(): string {
  return new Date().toISOString().slice(0, 10)
}

function firstOfMonth(): string {
  return `${today().slice(0, 8)}01`
}

/** A total as the interface shows it. */
export function usageRow({ day: number, app, workflow, ...sums }: LedgerTotal): UsageRow {
  return {
    ...(number === undefined ? {} : { day: dayText(number) }),
    ...(workflow === undefined ? {} : { workflow }),
    ...(app === undefined ? {} : { application: app }),
    ...sums,
  }
}

/** Formats the rows as CSV with a line of names. */
export function usageCsv(rows: readonly UsageRow[], groupBy: readonly Group[]): string {
  const names = [...(Object.keys(groups) as Group[]).filter((name) => groupBy.includes(name)), ...amountNames]
  const lines = [names, ...rows.map((row) => names.map((name) => field(row[name])))]
  return lines.map((line) => `${line.join(',')}\r\n`).join('')
}

const amountNames = Object.keys(amounts) as (keyof typeof amounts)[]

/** RFC 4180. A text that a spreadsheet would take for a formula gets an apostrophe in front. */
function field(value: string | number | undefined): string {
  const plain = String(value ?? '')
  const safe = typeof value === 'string' && /^[=+\-@\t\r]/.test(plain) ? `'${plain}` : plain
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
