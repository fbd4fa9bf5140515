import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Logger } from '../ports/logger.js'

/** Names the process in the names of its folders: after a restart the same pid has another time. */
const startedAt = Math.round(performance.timeOrigin)
const host = hostname().replace(/[^\w-]/g, '')

/**
 * Folders for the files of running attempts. All of them lie in one folder of this process that only its user can enter
 * (`mkdtemp`: mode 0700, a name that nobody can guess), so that no other local user can read an input or prepare a link for it.
 */
export class Scratch {
  readonly #directory: string
  readonly #logger: Logger
  #root: Promise<string> | undefined

  /** @param directory where the process's folder is made, when it is first needed */
  constructor(directory: string, logger: Logger) {
    this.#directory = directory
    this.#logger = logger
  }

  /** An empty folder of its own for one attempt. */
  async folder(name: string): Promise<string> {
    this.#root ??= this.#makeRoot().catch((error: unknown) => {
      this.#root = undefined
      throw error
    })
    const folder = join(await this.#root, name)
    await mkdir(folder, { mode: 0o700 })
    return folder
  }

  /** Removes the process's folder with all that is in it. */
  async close(): Promise<void> {
    const root = await this.#root?.catch(() => undefined)
    this.#root = undefined
    if (root !== undefined) await rm(root, { recursive: true, force: true })
  }

  /** Removes what processes of this machine left that ended without `close`. */
  async removeLeftovers(): Promise<void> {
    const names = await readdir(this.#directory).catch(() => [])
    for (const name of names.filter(isLeftover)) {
      await rm(join(this.#directory, name), { recursive: true, force: true }).catch((error: unknown) =>
        this.#logger.warn({ folder: name, err: error }, 'Scratch files of a dead process could not be removed.'),
      )
    }
  }

  async #makeRoot(): Promise<string> {
    await mkdir(this.#directory, { recursive: true })
    return await mkdtemp(join(this.#directory, `stemwork-scratch.${host}.${process.pid}.${startedAt}.`))
  }
}

function isLeftover(name: string): boolean {
  const [, owner, pid, started] = /^stemwork-scratch\.([\w-]*)\.(\d+)\.(\d+)\.\w+$/.exec(name) ?? []
  // Another machine's or container's processes cannot be judged from here.
  if (owner !== host || pid === undefined) return false
  return Number(pid) === process.pid ? Number(started) !== startedAt : !isRunning(Number(pid))
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
