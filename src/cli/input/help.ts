import { type Command, type CommandOption, flag } from '../command.js'

const helpOption = flag('Show this help.', { short: 'h' })

const usualWidth = 100
/** A longer name of an option or command has its description on the next line. */
const longestLeft = 32

/** The help of one command, in lines of at most `width` characters where words allow it. */
export function commandHelp(command: Command, width = usualWidth): string {
  const actions = Object.entries(command.actions ?? {}).map(([name, { description }]) => [name, description] as const)
  const notes = [command.notes, environmentNote(command.options)].filter((note) => note !== undefined)
  return (
    `Usage: stemwork ${command.usage}\n\n${wrapped(command.description, width)}\n` +
    (actions.length > 0 ? `\nActions:\n${columns(actions, width)}` : '') +
    `\nOptions:\n${optionList(command.options, width)}` +
    notes.map((note) => `\n${wrapped(note, width)}\n`).join('')
  )
}

/** The help of one action of a command, such as `keys create`; undefined if it has no such action. */
export function actionHelp(
  commandName: string,
  command: Command,
  actionName: string,
  width = usualWidth,
): string | undefined {
  const action = Object.hasOwn(command.actions ?? {}, actionName) ? command.actions?.[actionName] : undefined
  if (!action) return undefined
  const { usage, description, options } = action
  const own = Object.fromEntries(Object.entries(command.options).filter(([name]) => options.includes(name)))
  const line = [commandName, actionName, usage, '[options]'].filter((part) => part !== undefined).join(' ')
  return `Usage: stemwork ${line}\n\n${wrapped(description, width)}\n\nOptions:\n${optionList(own, width)}`
}

function optionList(options: Record<string, CommandOption>, width: number): string {
  const all = Object.entries({ ...options, help: helpOption })
  return columns(
    all.map(([name, option]) => [spelling(name, option), option.help] as const),
    width,
  )
}

function environmentNote(options: Record<string, CommandOption>): string | undefined {
  const named = Object.entries(options).filter(([, { variable }]) => variable !== undefined)
  const [[name, { variable }] = ['', {}]] = named
  if (variable === undefined) return undefined
  if (named.length === 1) return `Environment: ${variable} sets --${name}.`
  const spelled = (some: string[]) => some.map((each) => `--${each}`).join(', ')
  const others = Object.keys(options).filter((each) => options[each]?.variable === undefined)
  const all = others.length === 0 ? 'Each option' : `Each option except ${spelled(others)}`
  const which = others.length < named.length ? all : spelled(named.map(([each]) => each))
  return (
    `Environment: ${which} can also be set by environment variables, for example --${name} by ${variable}. ` +
    'Separate several values with commas; a switch is 1 or 0.'
  )
}

export function programHelp(commands: Record<string, { summary: string }>, width = usualWidth): string {
  const rows = Object.entries(commands).map(([name, { summary }]) => [name, summary] as const)
  return (
    'Usage: stemwork <command> [options]\n\nSeparates, measures and converts songs, on this machine or as a ' +
    'service.\n\n' +
    `Commands:\n${columns(rows, width)}\n"stemwork <command> --help" shows the options of a command; "stemwork ` +
    `--version" shows the version.\n`
  )
}

function spelling(name: string, { short, type, value = 'value', multiple }: CommandOption): string {
  const long = type === 'string' ? `--${name} <${value}>${multiple ? ' ...' : ''}` : `--${name}`
  return short ? `-${short}, ${long}` : `    ${long}`
}

function columns(rows: readonly (readonly [string, string])[], width: number): string {
  const leftWidth = Math.min(longestLeft, Math.max(...rows.map(([left]) => left.length)))
  const indent = ' '.repeat(leftWidth + 4)
  return rows
    .map(([left, right]) => {
      const text = wrapped(right, width - indent.length).replaceAll('\n', `\n${indent}`)
      return left.length > leftWidth ? `  ${left}\n${indent}${text}\n` : `  ${left.padEnd(leftWidth)}  ${text}\n`
    })
    .join('')
}

/** Wraps the text between words and keeps its line breaks. Columns of fewer than 30 characters are unreadable. */
function wrapped(text: string, width: number): string {
  return text.replace(new RegExp(`(?=.{${Math.max(30, width) + 1}})(.{1,${Math.max(30, width)}})( |$)`, 'g'), '$1\n')
}
