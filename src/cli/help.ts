import type { Command, CommandOption } from './command.js'

/** The help of one command. */
export function commandHelp(command: Command): string {
  const options = {
    ...command.options,
    help: { type: 'boolean', short: 'h', help: 'Show this help.' } satisfies CommandOption,
  }
  const rows = Object.entries(options).map(([name, option]) => [spelling(name, option), option.help] as const)
  const notes = command.notes ? `\n${command.notes}\n` : ''
  return `Usage: stemwork ${command.usage}\n\n${command.description}\n\nOptions:\n${columns(rows)}${notes}`
}

/** The help of the program: its commands. */
export function programHelp(commands: Record<string, { summary: string }>): string {
  const rows = Object.entries(commands).map(([name, { summary }]) => [name, summary] as const)
  return (
    'Usage: stemwork <command> [options]\n\nSeparates songs into vocals and accompaniment, here or as a service.\n\n' +
    `Commands:\n${columns(rows)}\n"stemwork <command> --help" shows the options of a command; "stemwork --version" the version.\n`
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
