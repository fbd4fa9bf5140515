import { mkdtemp, readdir } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Logger } from '../../ports/logger.js'
import { removeFolder } from '../../runner/run-folder.js'

/** Name prefix of the folders with the files of running attempts. */
export const scratchPrefix = 'stemwork-scratch'

/** Identifies the process in folder names, because a later process may have the same PID. */
const startedAt = Math.trunc(performance.timeOrigin)
const host = hostname().replace(/[^\w-]/g, '')

/**
 * Creates a folder for this process that only its user can enter (`mkdtemp`: mode 0700, an unpredictable name), so that
 * no other local user can read its content or plant a link in its place.
 */
export async function makeProcessFolder(directory: string, prefix: string): Promise<string> {
  return await mkdtemp(join(directory, `${prefix}.${host}.${process.pid}.${startedAt}.`))
}

/** Removes the folders of ended processes on this machine. */
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

/** Whether this machine runs a process with this id. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
