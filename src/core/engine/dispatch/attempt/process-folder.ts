import { mkdtemp, readdir } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Logger } from '../../ports/logger.js'
import { removeFolder } from '../../runner/run-folder.js'

/** Of the folders with the files of running attempts. */
export const scratchPrefix = 'stemwork-scratch'

/** Identifies the process in folder names: after a restart, the same PID has a different time. */
const startedAt = Math.trunc(performance.timeOrigin)
const host = hostname().replace(/[^\w-]/g, '')

/**
 * Creates a folder for this process that only its user can enter (`mkdtemp`: mode 0700, a name that nobody can guess),
 * so that no other local user can read what is in it or prepare a link for it.
 */
export async function makeProcessFolder(directory: string, prefix: string): Promise<string> {
  return await mkdtemp(join(directory, `${prefix}.${host}.${process.pid}.${startedAt}.`))
}

/** Removes the folders that processes of this machine left behind when they ended. */
export async function removeDeadFolders(directory: string, prefix: string, logger: Logger): Promise<void> {
  const names = await readdir(directory).catch(() => [])
  for (const name of names.filter((one) => one.startsWith(`${prefix}.`) && isLeftover(one.slice(prefix.length)))) {
    await removeFolder(join(directory, name)).catch((error: unknown) =>
      logger.warn({ folder: name, err: error }, 'The files of a dead process could not be removed.'),
    )
  }
}

function isLeftover(rest: string): boolean {
  const [, owner, pid, started] = /^\.([\w-]*)\.(\d+)\.(\d+)\.\w+$/.exec(rest) ?? []
  // Processes of other machines and containers cannot be checked from here.
  if (owner !== host || pid === undefined) return false
  return Number(pid) === process.pid ? Number(started) !== startedAt : !isRunning(Number(pid))
}

/** Whether there is such a process on this machine. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
