import { execFile as execFileCallback } from 'node:child_process'
import { access, readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { invalidOptions } from '../../core/engine/errors.js'
import { systemErrorText } from '../terminal/system-error.js'

const execFile = promisify(execFileCallback)

/** Whether this program can import TypeScript: Bun, Deno, and Node from 22.18 on. */
export function runsTypeScript(): boolean {
  return 'typescript' in process.features && process.features.typescript !== false
}

/** @param what kind of file, for messages, such as `workflow file` */
export async function readJson(what: string, path: string): Promise<unknown> {
  const text = await readFile(path, 'utf8').catch((error) => fail(what, path, systemErrorText(error), error))
  try {
    // Some editors begin a file with a byte order mark.
    return JSON.parse(text.replace(/^\uFEFF/, ''))
  } catch (error) {
    return fail(what, path, `it is not JSON: ${(error as Error).message}`, error)
  }
}

/** The default export of an ES module. @param what as for `readJson` */
export async function importDefault(what: string, path: string): Promise<unknown> {
  const absolute = resolve(path)
  try {
    // For a missing file, Node's own message would name the file that imports it: this one.
    await access(absolute)
    const module = (await import(pathToFileURL(absolute).href)) as { default?: unknown }
    return module.default
  } catch (error) {
    return fail(what, path, await causeText(error, absolute), error)
  }
}

function fail(what: string, path: string, why: string, cause: unknown): never {
  throw invalidOptions(`The ${what} ${path} could not be loaded: ${why}`, cause)
}

/** Describes an error of loading a module in one line, with file and line number where Node gives them. */
async function causeText(error: unknown, path: string): Promise<string> {
  if (!(error instanceof Error)) return `it threw ${String(error)}.`
  if ('syscall' in error) return systemErrorText(error as NodeJS.ErrnoException)
  const location = locationIn(error.stack ?? '') ?? (error instanceof SyntaxError && (await syntaxErrorLocation(path)))
  return `${error.name}: ${error.message}${location ? ` (${location})` : ''}`
}

/** Node does not give the line of a syntax error in an imported module, but `node --check` prints it. */
async function syntaxErrorLocation(path: string): Promise<string | undefined> {
  const output = await execFile(process.execPath, ['--check', path]).then(
    () => '',
    ({ stderr = '' }: { stderr?: string }) => stderr,
  )
  return /^(\/|\w:).*:\d+$/m.exec(output)?.[0]
}

/** The location in the first line like `file:///folder/file.mjs:1` or `    at name (file:///folder/file.mjs:3:6)`. */
function locationIn(text: string): string | undefined {
  const [, url, line] = /^(?: +at (?:.*\()?)?(file:\/\/\S+?):(\d+)(?::\d+\)?)?$/m.exec(text) ?? []
  return url && `${fileURLToPath(url)}:${line}`
}
