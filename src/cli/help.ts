import type { Command, CommandOption } from './command.js'

const helpOption: CommandOption = { type: 'boolean', short: 'h', help: 'Show this help.' }

/** The help of one command. */
export function commandHelp(command: Command): string {
  const actions = Object.entries(command.actions ?? {}).map(([name, { description }]) => [name, description] as const)
  const notes = [command.notes, environmentNote(command.options)].filter((note) => note !== undefined)
  return (
    `Usage: stemwork ${command.usage}\n\n${command.description}\n` +
    (actions.length > 0 ? `\nActions:\n${columns(actions)}` : '') +
    `\nOptions:\n${optionList(command.options)}` +
    notes.map((note) => `\n${note}\n`).join('')
  )
}

/** The help of one action of a command, such as `keys create`; undefined if it has no such action. */
export function actionHelp(commandName: string, command: Command, actionName: string): string | undefined {
  const action = Object.hasOwn(command.actions ?? {}, actionName) ? command.actions?.[actionName] : undefined
  if (!action) return undefined
  const { usage, description, options } = action
  const own = Object.fromEntries(Object.entries(command.options).filter(([name]) => options.includes(name)))
  const line = [commandName, actionName, usage, '[options]'].filter((part) => part !== undefined).join(' ')
  return `Usage: stemwork ${line}\n\n${description}\n\nOptions:\n${optionList(own)}`
}

function optionList(options: Record<string, CommandOption>): string {
  const all = Object.entries({ ...options, help: helpOption })
  return columns(all.map(([name, option]) => [spelling(name, option), option.help] as const))
}

function environmentNote(options: Record<string, CommandOption>): string | undefined {
  const named = Object.entries(options).filter(([, { variable }]) => variable !== undefined)
  const [[name, { variable }] = ['', {}]] = named
  if (variable === undefined) return undefined
  const which =
    named.length === Object.keys(options).length ? 'Each option' : named.map(([each]) => `--${each}`).join(', ')
  return `Environment: ${which} can also be set by environment variables, for example --${name} by ${variable}. Separate several values with commas; a switch is 1 or 0.`
}

/** The help of the program: its commands. */
export function programHelp(commands: Record<string, { summary: string }>): string {
  const rows = Object.entries(commands).map(([name, { summary }]) => [name, summary] as const)
  return (
    'Usage: stemwork <command> [options]\n\nSeparates songs into vocals and accompaniment, here or as a service.\n\n' +
    `Commands:\n${columns(rows)}\n"stemwork <command> --help" shows the options of a command; "stemwork --version" shows the version.\n`
  )
}

function spelling(name: string, { short, type, value = 'value', multiple }: CommandOption): string {
  const long = type === 'string' ? `--${name} <${value}>${multiple ? ' ...' : ''}` : `--${name}`
  return short ? `-${short}, ${long}` : `    ${long}`
}

function columns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows
    .map(([left, right]) => `  ${left.padEnd(width)}  ${right.replaceAll('\n', `\n${' '.repeat(width + 4)}`)}\n`)
    .join('')
}
