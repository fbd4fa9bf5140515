import { type LedgerGroup, ledgerGroups } from '../../core/engine/job/ledger.js'
import { usageCsv, usageRow } from '../../http/service/usage-routes.js'
import { type Command, type CommandInput, exitStatus, flag, UsageError, valued } from '../command.js'
import { storeOptions, storeUrls } from '../service/service-storage.js'
import { namedApplication, withEngine } from '../service/store-engine.js'
import { jobCount } from '../terminal/style.js'

const groups: Record<string, LedgerGroup> = { day: 'day', workflow: 'workflow', application: 'app' }

export const command: Command = {
  usage: 'usage [--from <day>] [--to <day>] [--by <list>] (--data <dir> | --store <url>)',
  description:
    'Shows what the jobs of a service have used: ended jobs, seconds of audio, bytes of inputs and processor ' +
    'seconds, by day (UTC), workflow and application. The service must be stopped (--data, SQLite), or its store ' +
    'shared (--store postgres://...).',
  options: {
    ...storeOptions,
    from: valued('day', 'First day, such as 2026-11-01. Default: the first of this month.'),
    to: valued('day', 'Last day. Default: today.'),
    by: valued('list', 'day, workflow, application, separated by commas. Default: application.'),
    app: valued('name', 'Name of an application. Default: all.'),
    csv: flag('Print CSV.'),
    json: flag('Print JSON.'),
  },
  async run(input, terminal) {
    const today = new Date().toISOString().slice(0, 10)
    const [from, to] = [dayOf(input, 'from', `${today.slice(0, 8)}01`), dayOf(input, 'to', today)]
    if (from > to) throw new UsageError('--from must be a day before --to, or the same.')
    const by = (input.text('by') ?? 'application').split(',').map((name) => name.trim())
    const groupBy = by.map((name) => {
      if (Object.hasOwn(groups, name)) return groups[name] ?? ledgerGroups[0]
      throw new UsageError(`--by takes ${Object.keys(groups).join(', ')}, not "${name}".`)
    })
    const missing = 'The ledger is in a store: give --data <dir> or --store <url>.'
    return await withEngine(storeUrls(input, missing), terminal, async (engine) => {
      const applications = await engine.applications.listApplications()
      const app = namedApplication(applications, input)?.id
      const totals = await engine.usageTotals({ from, to, app, groupBy })
      const names = new Map(applications.map((one) => [one.id, one.name]))
      const rows = totals.map((total) =>
        usageRow(total.app === undefined ? total : { ...total, app: names.get(total.app) ?? total.app }),
      )
      const shown = by as ('day' | 'workflow' | 'application')[]
      const { stdout } = terminal
      if (input.isOn('json')) stdout.write(`${JSON.stringify(rows)}\n`)
      else if (input.isOn('csv')) stdout.write(usageCsv(rows, shown))
      else stdout.write(rows.map((row) => line(row, shown)).join('') || 'Nothing was used on these days.\n')
      return exitStatus.done
    })
  },
}

function line(row: ReturnType<typeof usageRow>, by: readonly ('day' | 'workflow' | 'application')[]): string {
  const group = by.map((name) => row[name]).join('  ')
  const minutes = Math.round(row.audioSeconds / 6) / 10
  const megabytes = Math.round(row.bytes / 1e5) / 10
  return (
    `${group}: ${jobCount(row.jobs)} ended, ${row.succeeded} succeeded, ${minutes} min of audio, ${megabytes} MB, ` +
    `${Math.round(row.processorSeconds)} s of processor time\n`
  )
}

function dayOf(input: CommandInput, name: string, usual: string): number {
  const text = input.text(name) ?? usual
  const time = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : Number.NaN
  // `Date.parse` takes February 31 for a day in March.
  if (Number.isNaN(time) || new Date(time).toISOString().slice(0, 10) !== text)
    throw new UsageError(`--${name} must be a day such as ${usual}, not "${text}".`)
  return time
}
