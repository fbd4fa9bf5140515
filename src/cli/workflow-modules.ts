import { execFile as execFileCallback } from 'node:child_process'
import { access, readdir, readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { StemworkError } from '../core/engine/errors.js'
import { type Composition, composeWorkflow } from '../core/engine/workflow/composition.js'
import type { Workflow } from '../core/engine/workflow/workflow.js'
import type { CommandInput } from './command.js'
import { packageWorkflows } from './model-options.js'
import { systemErrorText } from './system-error.js'
import { fileWorkflows } from './workflow-file.js'

const execFile = promisify(execFileCallback)

/**
 * All workflows of a node: those of the package, and those of `--workflows`.
 *
 * @param isRunHere as for `packageWorkflows`
 */
export async function allWorkflows(input: CommandInput, isRunHere: boolean): Promise<Workflow[]> {
  const own = await packageWorkflows(input, isRunHere)
  return [...own, ...(await loadWorkflows((input.values.workflows as string[] | undefined) ?? [], own))]
}

/**
 * Workflows of the operator's own: each file is an ES module whose default export is a workflow or a list of them, as
 * `defineWorkflow` makes them; or JSON with a composition, or a list of them, of the workflows that are known by then.
 * Of a folder, all such files in it, those of JSON last.
 *
 * @param known what the steps of a composition may name
 * @throws StemworkError `INVALID_OPTIONS` naming the file.
 */
async function loadWorkflows(paths: readonly string[], known: readonly Workflow[]): Promise<Workflow[]> {
  const loaded: Workflow[] = []
  for (const path of (await Promise.all(paths.map(filesAt))).flat()) {
    if (path.endsWith('.json')) {
      const compositions = [await readJson(path)].flat() as Composition[]
      for (const one of compositions) loaded.push(composeWorkflow(one, { workflows: [...known, ...loaded] }))
      continue
    }
    const workflows = fileWorkflows(await importDefault(path), pathToFileURL(resolve(path)).href)
    if (!workflows) {
      throw new StemworkError(
        'INVALID_OPTIONS',
        `The default export of ${path} must be a workflow made by defineWorkflow, or a list of them.`,
      )
    }
    loaded.push(...workflows)
  }
  return loaded
}

/** The file, or the files of workflows in the folder. Tests and what begins with a dot are none. */
async function filesAt(path: string): Promise<string[]> {
  const names = await readdir(path).catch(() => undefined)
  const isTypeScript = 'typescript' in process.features && process.features.typescript !== false
  const kinds = isTypeScript ? /^[^.].*\.(m?[jt]s|json)$/ : /^[^.].*\.(m?js|json)$/
  const files = names?.filter((name) => kinds.test(name) && !/\.(test|d)\.\w+$/.test(name)).sort()
  const isLast = (name: string) => Number(name.endsWith('.json'))
  return files ? files.sort((a, b) => isLast(a) - isLast(b)).map((name) => join(path, name)) : [path]
}

async function readJson(path: string): Promise<unknown> {
  const text = await readFile(path, 'utf8').catch((error) => fail(path, systemErrorText(error), error))
  try {
    return JSON.parse(text)
  } catch (error) {
    return fail(path, `it is not JSON: ${(error as Error).message}`, error)
  }
}

async function importDefault(path: string): Promise<unknown> {
  const absolute = resolve(path)
  try {
    // Node's own words for a file that is not there would name the file that imports it: this one.
    await access(absolute)
    const module = (await import(pathToFileURL(absolute).href)) as { default?: unknown }
    return module.default
  } catch (error) {
    return fail(path, await causeText(error, absolute), error)
  }
}

function fail(path: string, why: string, cause: unknown): never {
  throw new StemworkError('INVALID_OPTIONS', `The workflow file ${path} could not be loaded: ${why}`, { cause })
}

/** What was thrown while a module was loaded, in one line with the file and line, as far as Node tells them. */
async function causeText(error: unknown, path: string): Promise<string> {
  if (!(error instanceof Error)) return `it threw ${String(error)}.`
  if ('syscall' in error) return systemErrorText(error as NodeJS.ErrnoException)
  const location = locationIn(error.stack ?? '') ?? (error instanceof SyntaxError && (await syntaxErrorLocation(path)))
  return `${error.name}: ${error.message}${location ? ` (${location})` : ''}`
}

/** Node keeps the line of a syntax error in an imported module to itself, but prints it when it is asked to check. */
async function syntaxErrorLocation(path: string): Promise<string | undefined> {
  const output = await execFile(process.execPath, ['--check', path]).then(
    () => '',
    ({ stderr = '' }: { stderr?: string }) => stderr,
  )
  return /^(\/|\w:).*:\d+$/m.exec(output)?.[0]
}

/** Of the first line such as `file:///folder/file.mjs:1` or `    at name (file:///folder/file.mjs:3:6)`. */
function locationIn(text: string): string | undefined {
  const [, url, line] = /^(?: +at (?:.*\()?)?(file:\/\/\S+?):(\d+)(?::\d+\)?)?$/m.exec(text) ?? []
  return url && `${fileURLToPath(url)}:${line}`
}
