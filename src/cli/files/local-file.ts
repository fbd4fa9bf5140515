import { rmSync, type Stats } from 'node:fs'
import { access, constants, mkdir, mkdtemp, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { badInput, StemworkError } from '../../core/engine/errors.js'
import type { InputFile } from '../../core/engine/ports/runner.js'
import { UsageError } from '../command.js'

/** @throws StemworkError `NOT_FOUND` for a file or folder that is missing or cannot be read */
export async function requirePath(path: string): Promise<Stats> {
  return stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw unreadable(path, error)
    const message = `There is no file "${path}". Check the path; the current folder is ${process.cwd()}.`
    throw new StemworkError('NOT_FOUND', message)
  })
}

/** @throws StemworkError unless the path is that of a readable file */
export async function requireFile(path: string): Promise<InputFile> {
  const stats = await requirePath(path)
  if (!stats.isFile()) throw badInput('unsupported_format', `"${path}" is not a file. Name one audio file.`)
  await access(path, constants.R_OK).catch((error: Error) => {
    throw unreadable(path, error)
  })
  return { path: resolve(path), bytes: stats.size, name: basename(path) }
}

function unreadable(path: string, { message }: Error): StemworkError {
  return new StemworkError('NOT_FOUND', `"${path}" cannot be read: ${message}. Check its path and permissions.`)
}

/** @throws UsageError if a result would replace the file that it is made from, or a folder */
export async function refuseInput(path: string, target: string): Promise<void> {
  const [input, output] = await Promise.all([path, target].map((each) => stat(each).catch(() => undefined)))
  if (input && output && input.ino === output.ino && input.dev === output.dev)
    throw new UsageError(`The output "${target}" is the input file. Choose another name; the input is kept as it is.`)
  if (output?.isDirectory()) throw new UsageError(`The output "${target}" is a folder. Name a file.`)
}

export interface UnfinishedFolder {
  path: string
  remove(): Promise<void>
}

/** Creates a folder for unfinished files. An error names the user's `parent`, not the new folder. */
export async function unfinishedFolder(parent: string, prefix: string): Promise<UnfinishedFolder> {
  const path = await mkdtemp(join(parent, prefix)).catch((error: unknown) => {
    throw error instanceof Error ? Object.assign(error, { path: parent }) : error
  })
  return removedAtExit(path)
}

/** @param path of a folder for unfinished files, which a second Ctrl-C removes, too */
export function removedAtExit(path: string): UnfinishedFolder {
  const removeAtOnce = () => rmSync(path, { recursive: true, force: true })
  process.once('exit', removeAtOnce)
  return {
    path,
    async remove() {
      await rm(path, { recursive: true, force: true })
      process.off('exit', removeAtOnce)
    },
  }
}

/**
 * Creates a folder and its parents. Not with Node's recursive `mkdir`, which never ends in /proc and reports a
 * read-only disk as a missing path.
 *
 * @returns the first folder that was made
 */
export async function makeFolder(given: string, mode = 0o777): Promise<string | undefined> {
  const path = resolve(given)
  try {
    await mkdir(path, { mode })
    return path
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST' && (await stat(path)).isDirectory()) return undefined
    if (code !== 'ENOENT' || dirname(path) === path) throw error
    const above = await makeFolder(dirname(path), mode)
    await mkdir(path, { mode })
    return above ?? path
  }
}
