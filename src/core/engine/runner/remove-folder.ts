import { chmod, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

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
