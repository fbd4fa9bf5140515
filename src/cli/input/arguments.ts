import { parseArgs } from 'node:util'
import { type Command, CommandInput, type CommandOption, type Configured, UsageError } from '../command.js'
import { environmentValues, listOf } from './environment.js'
import { nearest } from '../../core/engine/workflow/nearest.js'

// Written on Node's parser: commander takes `--port --data x` for a port "--data", and a switch whose variable is 0 for
// one that is on.

/**
 * Parses the command line and checks it against the command's options; `--help` is always known. Missing options are
 * taken from their environment variables, or else from the configuration file.
 *
 * @param configured content of that file
 * @throws UsageError naming what is not understood and, for an option, the nearest known one
 */
export function parseArguments(
  argv: readonly string[],
  command: Pick<Command, 'options' | 'positionals' | 'usage'>,
  configured: Configured = { values: {} },
): CommandInput {
  const options: Record<string, CommandOption> = { ...command.options, help: { type: 'boolean', short: 'h', help: '' } }
  const { tokens } = parseArgs({
    args: [...argv],
    options: Object.fromEntries(
      Object.entries(options).map(([name, { type, short }]) => [name, short ? { type, short } : { type }]),
    ),
    strict: false,
    tokens: true,
  })
  const values: CommandInput['values'] = {}
  const positionals: string[] = []

  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value)
    if (token.kind !== 'option') continue
    const option = Object.hasOwn(options, token.name) ? options[token.name] : undefined
    if (!option) throw unknownOption(token.rawName, options)
    const value = valueOf(token, option)
    const before = values[token.name]
    values[token.name] =
      option.multiple === true && typeof value === 'string'
        ? [...(Array.isArray(before) ? before : []), ...(option.variable === undefined ? [value] : listOf(value))]
        : value
  }
  const { settings } = configured
  if (values.help === true) return new CommandInput(values, positionals, settings)
  checkCount(positionals, command, values)
  const all = [environmentValues(command.options), values].reduce(overlaid, configured.values)
  return new CommandInput(all, positionals, settings)
}

/** Merges values: `above` wins, and lists are concatenated. */
function overlaid(below: CommandInput['values'], above: CommandInput['values']): CommandInput['values'] {
  const all = { ...below }
  for (const [name, value] of Object.entries(above)) {
    const before = all[name]
    all[name] = Array.isArray(before) && Array.isArray(value) ? [...before, ...value] : value
  }
  return all
}

/** @throws UsageError for a switch with a value, or another option without one */
function valueOf(
  { rawName, value, inlineValue }: { rawName: string; value?: string; inlineValue?: boolean },
  option: CommandOption,
): string | true {
  if (option.type === 'boolean') {
    if (value === undefined) return true
    throw new UsageError(`${rawName} takes no value, but got "${value}".`)
  }
  // "--port --data x" is a forgotten value; "--gain -6" and "--port=-1" are values.
  const isMissing = value === undefined || value === '' || (inlineValue !== true && /^-[^\d.]/.test(value))
  if (!isMissing) return value
  throw new UsageError(`${rawName} needs a value: ${rawName} <${option.value ?? 'value'}>.`)
}

function checkCount(
  positionals: string[],
  { positionals: { min, max } = { min: 0, max: 0 }, usage }: Pick<Command, 'positionals' | 'usage'>,
  values: CommandInput['values'],
): void {
  if (positionals.length < min) throw new UsageError(`An argument is missing. Usage: stemwork ${usage}`)
  if (positionals.length <= max) return
  const [several] = Object.keys(values).filter((name) => Array.isArray(values[name]))
  const hint = several === undefined ? '' : ` Repeat the option for each value: --${several} a --${several} b.`
  throw new UsageError(`Unexpected argument "${positionals[max]}".${hint} Usage: stemwork ${usage}`)
}

function unknownOption(rawName: string, known: Record<string, CommandOption>): UsageError {
  const [now] = Object.entries(known).find(([, { was }]) => `--${was}` === rawName) ?? []
  if (now !== undefined) return new UsageError(`${rawName} was renamed. Use --${now}.`)
  const match = rawName.startsWith('--') ? nearest(rawName.slice(2), Object.keys(known)) : undefined
  const hint = match
    ? ` Did you mean --${match}?`
    : rawName.startsWith('--')
      ? ''
      : ' A file name that starts with a dash is written ./-name.'
  return new UsageError(`Unknown option ${rawName}.${hint}`)
}
