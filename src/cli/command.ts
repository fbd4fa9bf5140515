import type { ServiceConfig } from '../service-config.js'

/** Output streams of a command; `main.ts` passes those of the process. */
export interface Terminal {
  stdout: NodeJS.WritableStream
  stderr: NodeJS.WritableStream & { isTTY?: boolean; columns?: number }
}

export interface CommandOption {
  type: 'string' | 'boolean'
  short?: string
  multiple?: boolean
  /** Name before 0.2; using it is an error that names the new one. */
  was?: string
  /** Name of the value in the help, for example `dir`. */
  value?: string
  /** The environment variable that also sets it. */
  variable?: string
  /** The variable of its old name. */
  oldVariable?: string
  /** Path in the options of `createEngine`, `createHandler` or a workflow, if its last part is named differently. */
  inCode?: string
  help: string
}

type OptionFacts = Omit<CommandOption, 'type' | 'value' | 'help'>

/** An option with a value, whose name in the help is `value`. */
export function valued(value: string, help: string, facts: OptionFacts = {}): CommandOption {
  return { type: 'string', value, help, ...facts }
}

export function flag(help: string, facts: OptionFacts = {}): CommandOption {
  return { type: 'boolean', help, ...facts }
}

export type FileSettings = Pick<ServiceConfig, 'engine' | 'handler'>

/** Content of a configuration file: options as on the command line, and settings that only a file has. */
export interface Configured {
  values: Record<string, string | boolean | string[] | undefined>
  settings?: FileSettings | undefined
}

/** Options and arguments of a command. */
export class CommandInput {
  readonly values: Configured['values']
  readonly positionals: readonly string[]
  readonly settings: FileSettings | undefined

  constructor(values: Configured['values'], positionals: readonly string[] = [], settings?: FileSettings) {
    this.values = values
    this.positionals = positionals
    this.settings = settings
  }

  /** The first argument, for commands whose parser requires one. */
  get first(): string {
    const [first] = this.positionals
    if (first === undefined) throw new RangeError('a command without arguments was asked for its first one')
    return first
  }

  isOn(flagName: string): boolean {
    return this.values[flagName] === true
  }

  /** The value of an option that is given at most once. */
  text(name: string): string | undefined {
    const value = this.values[name]
    return typeof value === 'string' ? value : undefined
  }

  /** The values of an option that may be given several times. */
  list(name: string): string[] {
    const value = this.values[name]
    return Array.isArray(value) ? value : []
  }

  /** @throws UsageError unless the option is absent or a whole number in the range */
  number(name: string, { min, max }: { min: number; max: number }): number | undefined {
    const text = this.text(name)
    if (text === undefined) return undefined
    const value = Number(text)
    if (/^\d+$/.test(text) && value >= min && value <= max) return value
    throw new UsageError(`--${name} must be a whole number from ${min} to ${max}, not "${text}".`)
  }

  /** @throws UsageError unless the option is absent or one of the choices */
  oneOf<Choice extends string>(choices: readonly Choice[], name: string): Choice | undefined {
    const text = this.text(name)
    const found = choices.find((choice) => choice === text)
    if (text !== undefined && !found)
      throw new UsageError(`--${name} must be one of ${choices.join(', ')}, not "${text}".`)
    return found
  }
}

/** An action of a command, such as `keys create`, as its help describes it. */
export interface CommandAction {
  /** What follows the name of the action, for example `<key id>`. */
  usage?: string
  description: string
  /** Names of the command's options that apply to the action. */
  options: readonly string[]
}

export interface CommandEntry {
  /** One line in the list of commands. */
  summary: string
  /** Imported on demand, because a command loads its adapters. @param argv arguments after the command's name */
  load(argv?: readonly string[]): Promise<Command>
}

/** One subcommand. */
export interface Command {
  /** What follows `stemwork` in its help, for example `separate <file or url> [options]`. */
  usage: string
  description: string
  /** Number of arguments besides options. Default: none. */
  positionals?: { min: number; max: number }
  options: Record<string, CommandOption>
  /** Actions, if the first argument names one. */
  actions?: Record<string, CommandAction>
  /** Examples and notes under the options. */
  notes?: string
  /**
   * @returns the exit status
   * @throws UsageError for invalid values; StemworkError for failures
   */
  run(input: CommandInput, terminal: Terminal): Promise<number>
}

/** Exit statuses, as shells know them. */
export const exitStatus = { done: 0, failed: 1, usage: 2, interrupted: 130, terminated: 143 } as const

/** Invalid command line. Ends with status 2. */
export class UsageError extends Error {}

/** Returns the action that the first argument names. @throws UsageError for an unknown one, or an option of another */
export function actionOf(input: CommandInput, { usage, options, actions = {} }: Command): string {
  const action = input.first
  const [name] = usage.split(' ', 1)
  if (!Object.hasOwn(actions, action))
    throw new UsageError(`${name} ${action} is not a command. Expected one of: ${Object.keys(actions).join(', ')}.`)
  // An ignored filter would let a change reach more than asked. Options from the environment apply to all actions.
  const takers = (option: string) => Object.keys(actions).filter((one) => actions[one]?.options.includes(option))
  const stray = Object.keys(input.values).find(
    (option) =>
      options[option]?.variable === undefined && takers(option).length > 0 && !takers(option).includes(action),
  )
  if (stray !== undefined) throw new UsageError(`--${stray} belongs to ${takers(stray).join(', ')}, not to ${action}.`)
  return action
}
