import type { CommandOption } from '../../command.js'

/** A command of another program, translated for this one. */
export interface OtherRequest {
  /** Options of `separate`. */
  separate: Record<string, string | boolean>
  /** Name of the model in the other program. */
  model: string
  folder: string
  /** The only stem to write; a name that the model lacks is refused. Default: all stems. */
  only?: string
  /** The pattern of the file names, for programs that have one. */
  pattern?: string
  /** Names of the files, by stem. */
  names?: Record<string, string>
  format: { extension: string; kind: string }
}

/** Treatment of another program's option: exactly one of these. */
export type OtherOption = { short?: string; value?: string } & (
  | { does(request: OtherRequest, value: string): void }
  /** Only these values are supported; `instead` is the nearest thing for others. */
  | { only: readonly string[]; instead: string }
  /** The option only affects speed or messages, and is ignored. */
  | { isOfNoEffect: true }
  | { instead: string }
)

/** Description of another program. */
export interface OtherProgram {
  name: string
  options: Readonly<Record<string, OtherOption>>
  start(): OtherRequest
  /** The models of that program that are known here under other names. */
  models: Readonly<Record<string, string>>
  /** That program's name for a stem. */
  stemName(stem: string): string
  /** The path of a file under the folder of the request, without its extension. */
  pathOf(request: OtherRequest, track: { name: string; extension: string }, stem: string): string
}

/** Returns the option for the parser. It takes a value if it has a `value`, even if the option is only refused. */
export function optionOf(option: OtherOption): CommandOption {
  const takesValue = option.value !== undefined
  return { type: takesValue ? 'string' : 'boolean', short: option.short, value: option.value, help: '' }
}
