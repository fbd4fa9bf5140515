import type { ApplicationLimits } from '../../core/engine/engine.js'
import type { LimitChange, Limits } from '../../core/engine/job/quota.js'
import { actionOf, type Command, type CommandInput, exitStatus, flag, UsageError, valued } from '../command.js'
import { storeOptions, storeUrls } from '../service/service-storage.js'
import { namedApplication, withEngine } from '../service/store-engine.js'

/** Option names by the limit that they set. */
const figures = {
  maxQueuedJobs: 'max-queued',
  jobs: 'jobs',
  audioMinutes: 'audio-minutes',
  bytes: 'bytes',
} as const satisfies Record<keyof Limits, string>
const figureNames = Object.keys(figures) as (keyof Limits)[]

export const command: Command = {
  usage: 'limits <show | set> [--app <name>] [limits] (--data <dir> | --store <url>)',
  description:
    'Shows and sets how much an application may use per day (UTC), and how many of its jobs may wait. These values ' +
    'override the defaults for all applications, which are options of the program that runs the service. Jobs ' +
    'that were already accepted still run. The service must be stopped (--data, SQLite), or its store shared ' +
    '(--store postgres://...).',
  positionals: { min: 1, max: 1 },
  options: {
    ...storeOptions,
    app: valued('name', 'Name of an application. With show, default: all.'),
    'max-queued': valued('n', 'With set: jobs that may wait.'),
    jobs: valued('n', 'With set: jobs per day that are created or retried.'),
    'audio-minutes': valued('n', 'With set: minutes of audio per day of successful jobs.'),
    bytes: valued('n', 'With set: bytes of inputs per day of ended jobs.'),
    revision: valued(
      'text',
      'With set: the revision that show --json printed. If the limits were set since then, nothing is changed.',
    ),
    json: flag('Print JSON.'),
  },
  actions: {
    show: { description: 'Shows the limits and the usage of today.', options: ['data', 'store', 'app', 'json'] },
    set: {
      usage: '--app <name>',
      description: 'Sets the given limits; "default" resets one to the value for all applications.',
      options: ['data', 'store', 'app', ...Object.values(figures), 'revision', 'json'],
    },
  },
  async run(input, terminal) {
    const change = checkedChange(input)
    const missing = 'Limits live in a store: give --data <dir> or --store <url>.'
    return withEngine(storeUrls(input, missing), terminal, async (engine) => {
      const all = await engine.applications.listApplications()
      const named = namedApplication(all, input)
      if (change && named) await engine.setLimits(named.id, change, { revision: input.text('revision') })
      const rows = await Promise.all(
        (named ? [named] : all).map(async ({ id, name }) => ({ app: id, name, ...(await engine.limits(id)) })),
      )
      const text = () => rows.map(lines).join('') || 'There are no applications yet.\n'
      terminal.stdout.write(input.isOn('json') ? `${JSON.stringify(rows)}\n` : text())
      return exitStatus.done
    })
  },
}

/** Limits that `set` changes; undefined for `show`. @throws UsageError if action and options do not match */
function checkedChange(input: CommandInput): LimitChange | undefined {
  if (actionOf(input, command) === 'show') return undefined
  const change = changeOf(input)
  if (Object.keys(change).length === 0) throw new UsageError(`limits set needs at least one of ${optionNames()}.`)
  if (input.text('app') === undefined) throw new UsageError('limits set needs --app <name>.')
  return change
}

/** @throws UsageError for a value that is not a number */
function changeOf(input: CommandInput): LimitChange {
  const change: LimitChange = {}
  for (const figure of figureNames) {
    const text = input.text(figures[figure])
    if (text === undefined) continue
    const value = text === 'default' ? null : Number(text)
    const least = figure === 'maxQueuedJobs' ? 1 : 0
    if (value !== null && (!/^\d+$/.test(text) || value < least)) {
      const expected = `"default" or a whole number, ${least} or more`
      throw new UsageError(`--${figures[figure]} must be ${expected}, not "${text}".`)
    }
    change[figure] = value
  }
  return change
}

function optionNames(): string {
  return Object.values(figures)
    .map((option) => `--${option}`)
    .join(', ')
}

function lines({ name, own, effective, used }: ApplicationLimits & { name: string }): string {
  const usedOf = { jobs: used.jobs, audioMinutes: Math.round(used.audioSeconds / 6) / 10, bytes: used.bytes }
  const rows = figureNames.map((figure) => {
    const limit = effective[figure]
    const usedText = figure === 'maxQueuedJobs' ? '' : `, used today: ${usedOf[figure]}`
    const text = limit === undefined ? 'no limit' : `${limit}${own[figure] === undefined ? ' (as for all)' : ''}`
    return `  ${figures[figure].padEnd(14)} ${text}${limit === undefined ? '' : usedText}\n`
  })
  return `${name}\n${rows.join('')}`
}
