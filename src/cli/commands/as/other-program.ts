import type { CommandOption } from '../../command.js'

/** What a command of another program asks for, in terms of this one. */
export interface OtherRequest {
  /** Options of `separate`. */
  separate: Record<string, string | boolean>
  /** The name of the model, as the other program has it. */
  model: string
  folder: string
  /** Writes these stems alone; a name that is not a stem of the model is refused. Default: all. */
  only?: string
  /** The pattern of the file names, for programs that have one. */
  pattern?: string
  /** Names of the files, by stem. */
  names?: Record<string, string>
  format: { extension: string; kind: string }
}

/** What an option of another program becomes here: exactly one of these. */
export type OtherOption = { short?: string; value?: string } & (
  | { does(request: OtherRequest, value: string): void }
  /** Only these values are supported; `instead` is the nearest thing for others. */
  | { only: readonly string[]; instead: string }
  /** It only concerns speed or messages. */
  | { isOfNoEffect: true }
  | { instead: string }
)

/** Another program, as a table. */
export interface OtherProgram {
  name: string
  options: Readonly<Record<string, OtherOption>>
  start(): OtherRequest
  /** The models of that program that are known here under other names. */
  models: Readonly<Record<string, string>>
  /** The stem of a model, as that program calls it. */
  stemName(stem: string): string
  /** The path of a file under the folder of the request, without its extension. */
  pathOf(request: OtherRequest, track: { name: string; extension: string }, stem: string): string
}

/** Whether an option takes a value; `value` names it for options that are only refused. */
export function optionOf(option: OtherOption): CommandOption {
  const takesValue = option.value !== undefined
  return { type: takesValue ? 'string' : 'boolean', short: option.short, value: option.value, help: '' }
}
