import { existsSync } from 'node:fs'
import type { EngineSettings } from '../../core/engine/options.js'
import { nearest } from '../../core/engine/workflow/nearest.js'
import type { HandlerSettings } from '../../http/options.js'
import { type CommandOption, type Configured, type FileSettings, UsageError, valued } from '../command.js'
import { withEnvironment } from './environment.js'
import { importDefault, readJson, runsTypeScript } from './module-file.js'

type Options = Record<string, CommandOption>
const what = 'configuration file'

/** Options of `createEngine` and `createHandler` that only a configuration file can set, not the command line. */
export const fileSettings = {
  engine: ['limits', 'retention', 'quota', 'policies', 'inputs', 'checkpoints'],
  handler: ['limits', 'links', 'rateLimits'],
} satisfies { engine: (keyof EngineSettings)[]; handler: (keyof HandlerSettings)[] }

const fileNames = ['ts', 'mjs', 'js', 'json'].map((extension) => `stemwork.config.${extension}`)

const configOption = valued(
  'file',
  'File with options by their names, such as publicUrl for --public-url (see docs/configuration.md). Default: ' +
    `${fileNames.slice(0, -1).join(', ')} or ${fileNames.at(-1)} of the current folder, if there is one.`,
)

/** Lets environment variables and a configuration file set the options, too. */
export function configurable<Name extends string>(options: Record<Name, CommandOption>) {
  const all: Record<Name | 'config', CommandOption> = { ...options, config: configOption }
  return withEnvironment(all)
}

/** The name of an option in a configuration file, as in code: `publicUrl` for `--public-url`. */
export function nameInFile(option: string): string {
  return option.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
}

/**
 * Reads a command's options from the configuration file.
 *
 * @param given path from --config
 * @param all options that the file may name, including those of other commands
 * @throws UsageError for a wrong name or value; StemworkError for a file that cannot be loaded
 */
export async function configured(
  given: string | undefined,
  own: Options,
  all: () => Promise<Options>,
): Promise<Configured> {
  const path = given ?? fileNames.find((name) => existsSync(name))
  if (path === undefined) return { values: {} }
  const content = await contentOf(path)
  if (typeof content !== 'object' || content === null || Array.isArray(content))
    throw new UsageError(`The ${path.endsWith('.json') ? 'content' : 'default export'} of ${path} must be an object.`)
  const known = await all()
  const options = new Map(Object.keys(known).map((option) => [nameInFile(option), option]))
  options.delete('config')
  const values: Configured['values'] = {}
  const settings: FileSettings = {}
  for (const [name, value] of Object.entries(content)) {
    if (name === 'engine' || name === 'handler') {
      settings[name] = settingsOf(path, name, value)
      continue
    }
    const option = options.get(name)
    const kind = option === undefined ? undefined : known[option]
    if (option === undefined || !kind) throw unknownName(path, name, known)
    const read = valueOf(value, kind)
    if (read === undefined) throw new UsageError(`${path}: ${name} must be ${expected(kind)}, not ${shown(value)}.`)
    if (Object.hasOwn(own, option)) values[option] = read
  }
  return { values, settings }
}

/** Checks the names; the function that takes the settings checks their values. */
function settingsOf(path: string, part: keyof FileSettings, value: unknown): object {
  const known: readonly string[] = fileSettings[part]
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new UsageError(`${path}: ${part} must be an object with one or more of ${known.join(', ')}.`)
  const wrong = Object.keys(value).find((name) => !known.includes(name))
  if (wrong === undefined) return value
  throw new UsageError(`${path}: ${part}.${wrong} cannot be set in a file: expected only ${known.join(', ')}.`)
}

async function contentOf(path: string): Promise<unknown> {
  if (path.endsWith('.json')) return await readJson(what, path)
  if (!/\.m?ts$/.test(path) || runsTypeScript()) return await importDefault(what, path)
  throw new UsageError(
    `${path} is TypeScript, which Node ${process.versions.node} cannot load. Use Node 22.18 or newer, or write it in ` +
      'JavaScript as stemwork.config.mjs.',
  )
}

/** Converts to the form of the command line: string, list or switch; undefined for other types. */
function valueOf(value: unknown, { type, multiple }: CommandOption): string | boolean | string[] | undefined {
  // An empty --host would be every address, and an empty --data the current folder.
  const isText = (one: unknown) => (typeof one === 'string' && one !== '') || typeof one === 'number'
  if (type === 'boolean') return typeof value === 'boolean' ? value : undefined
  if (!multiple) return isText(value) ? String(value) : undefined
  const list = Array.isArray(value) ? (value as unknown[]) : [value]
  return list.every(isText) ? list.map(String) : undefined
}

function expected({ type, multiple }: CommandOption): string {
  if (type === 'boolean') return 'true or false'
  return multiple ? 'a string or a list of strings' : 'a string or a number'
}

function shown(value: unknown): string {
  return typeof value === 'object' && value !== null ? 'an object or a list' : JSON.stringify(value ?? null)
}

function unknownName(path: string, name: string, options: Options): UsageError {
  const [now] = Object.entries(options).find(([, { was }]) => was !== undefined && nameInFile(was) === name) ?? []
  if (now !== undefined) return new UsageError(`${path}: ${name} was renamed. Use ${nameInFile(now)}.`)
  const known = [...Object.keys(options).filter((option) => option !== 'config'), ...Object.keys(fileSettings)].map(
    nameInFile,
  )
  const meant = nearest(name, known)
  return new UsageError(
    `${path}: ${name} is not known: ${meant ? `the nearest name is ${meant}` : `expected only ${known.join(', ')}`}.`,
  )
}
