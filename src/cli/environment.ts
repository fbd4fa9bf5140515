import { type CommandInput, type CommandOption, UsageError } from './command.js'

/** The options, which may now also be set by environment variables: `--public-url` by `STEMWORK_PUBLIC_URL`. */
export function withEnvironment<Name extends string>(
  options: Record<Name, CommandOption>,
): Record<Name, CommandOption> {
  const named = Object.entries<CommandOption>(options).map(([name, option]) => {
    const variable = option.variable ?? `STEMWORK_${name.replaceAll('-', '_').toUpperCase()}`
    return [name, { ...option, variable }] as const
  })
  return Object.fromEntries(named) as Record<Name, CommandOption>
}

/**
 * The values that the environment has for options: one on the command line replaces it, or adds to it if it may be
 * repeated. Options that may be repeated are separated by commas, switches are `1` or `0`. An empty variable is as good
 * as none.
 *
 * @throws UsageError for a switch that is neither
 */
export function environmentValues(
  options: Record<string, CommandOption>,
  env: NodeJS.ProcessEnv = process.env,
): CommandInput['values'] {
  const values: CommandInput['values'] = {}
  for (const [name, { type, multiple, variable }] of Object.entries(options)) {
    const text = variable === undefined ? undefined : env[variable]
    if (variable === undefined || text === undefined || text === '') continue
    if (type === 'boolean') {
      if (!/^(1|0|true|false)$/.test(text)) throw new UsageError(`${variable} must be 1 or 0, not "${text}".`)
      values[name] = text === '1' || text === 'true'
      continue
    }
    values[name] = multiple === true ? text.split(',').map((part) => part.trim()) : text
  }
  return values
}
