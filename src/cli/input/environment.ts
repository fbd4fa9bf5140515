import { type CommandInput, type CommandOption, UsageError } from '../command.js'

/** Lets environment variables set the options, too: `STEMWORK_PUBLIC_URL` for `--public-url`. */
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

/** Splits a comma-separated list from the command line or a variable. */
export function listOf(text: string): string[] {
  return text.split(',').map((part) => part.trim())
}

function variableOf(name: string): string {
  return `STEMWORK_${name.replaceAll('-', '_').toUpperCase()}`
}

/**
 * Values of options from the environment. The command line overrides them, or adds to those of options that may be
 * repeated. Commas separate repeated values; switches are `1`, `true`, `0` or `false`. An empty variable counts as
 * unset.
 *
 * @throws UsageError for another value of a switch, and for a renamed variable
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
