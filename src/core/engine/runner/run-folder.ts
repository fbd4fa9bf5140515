import { chmod, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** Name of an output's file in the folder of its run. */
export function outputFile(name: string, fileName: string): string {
  return `output.${name}.${fileName}`
}

/**
 * Its name while the file is written from start to end. What is written stays as it is, except for the lengths in its
 * header.
 */
export function growingOutputFile(name: string, fileName: string): string {
  return `${outputFile(name, fileName)}.part`
}

/** Peaks of that file, as far as it is written, where the workflow keeps them. */
export function growingPeaksFile(name: string, fileName: string): string {
  return `${growingOutputFile(name, fileName)}.peaks`
}

/** Removes the folder of a run, or of all of a process, even if a program has left folders that may not be written. */
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
