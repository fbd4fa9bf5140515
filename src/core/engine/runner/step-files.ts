import { copyFile, constants } from 'node:fs/promises'
import { join } from 'node:path'
import { internalError, StemworkError } from '../errors.js'
import { maxValueCharacters } from '../job/step.js'
import type { InputFile, StepResult } from '../ports/runner.js'
import type { RunContext, StepFile } from '../workflow/steps.js'
import { factsOf } from './run-folder.js'

/**
 * Publishes the files that a function returned as outputs. Copies them, because the files of a step must not change.
 *
 * @param pathOf where an output belongs
 */
export async function publishFiles(
  returned: Awaited<ReturnType<NonNullable<RunFunction>>>,
  pathOf: (output: string) => string,
): Promise<void> {
  for (const [output, file] of Object.entries(returned ?? {})) {
    if (file === undefined) continue
    // Any other object may come from a client and contain the path of any file of the host.
    if (!(file instanceof KeptFile || file instanceof MadeFile))
      throw wrongSteps(`The function returned something other than a file of a step as its output "${output}".`)
    await copyFile(file.path, pathOf(output), constants.COPYFILE_FICLONE)
  }
}

export type RunFunction = (context: RunContext) => Promise<Readonly<Record<string, StepFile | undefined>> | void>

/** A file that a step made; in JSON, it becomes a mark. */
export class MadeFile implements StepFile {
  readonly name: string
  readonly path: string

  constructor(directory: string, name: string) {
    if (!/^[A-Za-z0-9][\w.-]{0,199}$/.test(name))
      throw wrongSteps(
        `A step made a file with the name ${JSON.stringify(name)}. Expected letters, digits, ".", "-", "_".`,
      )
    this.name = name
    this.path = join(directory, name)
  }

  toJSON(): FileMark {
    return { $file: this.name }
  }
}

/** A file of a finished step. */
class KeptFile implements StepFile {
  readonly name: string
  readonly path: string

  constructor(name: string, path: string) {
    this.name = name
    this.path = path
  }
}

interface FileMark {
  $file: string
}

/** Converts a step's return value to JSON, and finds the files in it. */
export async function asKept(name: string, made: unknown): Promise<StepResult> {
  const files = new Map<string, MadeFile>()
  const json = jsonOf(name, made, files)
  if (json !== undefined && json.length > maxValueCharacters)
    throw wrongSteps(
      `The step "${name}" returned ${json.length} characters of JSON. At most ${maxValueCharacters} are kept: write ` +
        'more into a file.',
    )
  const kept: Record<string, InputFile> = {}
  for (const { name: file, path } of files.values()) {
    const facts = await factsOf(path)
    if (!facts?.isFile()) throw wrongSteps(`The step "${name}" returned its file ${file}, but has not written it.`)
    kept[file] = { path, bytes: facts.size }
  }
  return { value: json === undefined ? null : JSON.parse(json), files: kept }
}

/** @throws StemworkError for a value that JSON cannot represent, such as a BigInt or a circular reference. */
function jsonOf(name: string, made: unknown, files: Map<string, MadeFile>): string | undefined {
  try {
    return JSON.stringify(made, function (this: Record<string, unknown>, key, value: unknown) {
      // `value` has gone through toJSON already.
      const original = this[key]
      if (original instanceof MadeFile) files.set(original.name, original)
      if (original instanceof KeptFile)
        throw wrongSteps(`The step "${name}" returned ${original.name} of another step. Return only its own files.`)
      return value
    })
  } catch (error) {
    if (StemworkError.is(error)) throw error
    throw wrongSteps(`The step "${name}" returned a value that is not JSON, which cannot be kept: ${String(error)}`)
  }
}

/** Replaces the marks in a value with their files. */
export function withFiles(value: unknown, files: Readonly<Record<string, InputFile>>): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((each) => withFiles(each, files))
  if (isMark(value)) {
    const file = Object.hasOwn(files, value.$file) ? files[value.$file] : undefined
    if (file) return new KeptFile(value.$file, file.path)
  }
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withFiles(each, files)]))
}

function isMark(value: object): value is FileMark {
  return '$file' in value && typeof value.$file === 'string' && Object.keys(value).length === 1
}

/** The error for a mistake in a workflow's function; clients do not see the message. */
export function wrongSteps(message: string): StemworkError {
  const { code, message: shown } = internalError(undefined)
  return new StemworkError(code, shown, { cause: new Error(message) })
}
