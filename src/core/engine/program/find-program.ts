import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { delimiter, isAbsolute, join } from 'node:path'
import { StemworkError } from '../errors.js'
import type { NeededProgram } from '../workflow/workflow.js'

/**
 * Finds the absolute path of a program: from the host (`STEMWORK_PROGRAM_FFMPEG` for `ffmpeg`), otherwise from the
 * workflow, otherwise on the PATH.
 *
 * @throws StemworkError `MISSING_DEPENDENCY` if it is missing or not executable
 */
export async function findProgram({ name, path: own }: NeededProgram, env = process.env): Promise<string> {
  const variable = `STEMWORK_PROGRAM_${name.toUpperCase().replace(/\W/g, '_')}`
  const path = env[variable] || own
  const folders = env.PATH ?? ''
  const candidates =
    path === undefined
      ? folders.split(delimiter).flatMap((folder) => withSuffixes(folder && join(folder, name)))
      : [path]
  for (const candidate of candidates) if (isAbsolute(candidate) && (await isProgram(candidate))) return candidate
  throw new StemworkError(
    'MISSING_DEPENDENCY',
    path === undefined
      ? `The program "${name}" is not on the PATH. Install it, or set ${variable} to its path.`
      : `The program "${name}" is not where ${env[variable] ? variable : 'the `path` of program()'} says. Expected ` +
          'the absolute path of a program.',
    { details: { program: name } },
  )
}

/** @throws StemworkError `MISSING_DEPENDENCY` for the first missing program */
export async function requirePrograms({ programs = [] }: { programs?: readonly NeededProgram[] }): Promise<void> {
  for (const program of programs) await findProgram(program)
}

function withSuffixes(path: string): string[] {
  if (process.platform !== 'win32') return [path]
  return [path, ...(process.env.PATHEXT ?? '.EXE').split(delimiter).map((suffix) => path + suffix)]
}

async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK)
    return (await stat(path)).isFile()
  } catch {
    return false
  }
}
