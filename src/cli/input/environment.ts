import { type CommandInput, type CommandOption, UsageError } from '../command.js'

/** The options, which may now also be set by environment variables: `--public-url` by `STEMWORK_PUBLIC_URL`. */
export function withEnvironment<Name extends string>(
  options: Record<Name, CommandOption>,
): Record<Name, CommandOption> {
  const named = Object.entries<CommandOption>(options).map(([name, option]) => {
    if (option.variable !== undefined) return [name, option] as const
    const oldVariable = option.was === undefined ? undefined : variableOf(option.was)
    return [name, { ...option, variable: variableOf(name), oldVariable }] as const
  })
  return Object.fromEntries(named) as Record<Name, CommandOption>
}

/** Splits a list that is given as one text, on the command line or in a variable. */
export function listOf(text: string): string[] {
  return text.split(',').map((part) => part.trim())
}

function variableOf(name: string): string {
  return `STEMWORK_${name.replaceAll('-', '_').toUpperCase()}`
}

/**
 * The values that the environment has for options: one on the command line replaces it, or adds to it if it may be
 * repeated. Values of options that may be repeated are separated by commas, switches are `1` or `0`. An empty variable
 * counts as not set.
 *
 * @throws UsageError for a switch that is neither, and for a variable that was renamed
 */
export function environmentValues(
  options: Record<string, CommandOption>,
  env: NodeJS.ProcessEnv = process.env,
): CommandInput['values'] {
  const values: CommandInput['values'] = {}
  for (const [name, { type, multiple, variable, oldVariable }] of Object.entries(options)) {
    if (oldVariable !== undefined && env[oldVariable])
      throw new UsageError(`${oldVariable} was renamed. Use ${variable}.`)
    const text = variable === undefined ? undefined : env[variable]
    if (variable === undefined || text === undefined || text === '') continue
    if (type === 'boolean') {
      if (!/^(1|0|true|false)$/.test(text)) throw new UsageError(`${variable} must be 1 or 0, not "${text}".`)
      values[name] = text === '1' || text === 'true'
      continue
    }
    values[name] = multiple === true ? listOf(text) : text
  }
  return values
}
