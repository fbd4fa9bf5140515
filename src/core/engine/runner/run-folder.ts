import type { Stats } from 'node:fs'
import { chmod, lstat, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** Name of an output's file in the run's folder. */
export function outputFile(name: string, fileName: string): string {
  return `output.${name}.${fileName}`
}

/**
 * Name of an output's file while it is written from start to end. Written bytes do not change, except for the lengths
 * in the header.
 */
export function growingOutputFile(name: string, fileName: string): string {
  return `${outputFile(name, fileName)}.part`
}

/** Name of the file with the peaks of a growing output so far, if the workflow writes them. */
export function growingPeaksFile(name: string, fileName: string): string {
  return `${growingOutputFile(name, fileName)}.peaks`
}

/** The facts of a file that a run has made, if it has: of a link itself, because that may lead out of the run. */
export async function factsOf(path: string): Promise<Stats | undefined> {
  return await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
    return undefined
  })
}

/** Removes the folder of a run, or of all runs of a process, even if a program left read-only folders in it. */
export async function removeFolder(path: string): Promise<void> {
  const remove = () => rm(path, { recursive: true, force: true, maxRetries: 3 })
  await remove().catch(async (error: unknown) => {
    if (!(error instanceof Error && 'code' in error && error.code === 'EACCES')) throw error
    await makeWritable(path)
    await remove()
  })
}

async function makeWritable(path: string): Promise<void> {
  await chmod(path, 0o700)
  for (const entry of await readdir(path, { withFileTypes: true }))
    if (entry.isDirectory()) await makeWritable(join(path, entry.name))
}
