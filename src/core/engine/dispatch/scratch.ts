import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from '../ports/logger.js'
import { makeProcessFolder, removeDeadFolders } from './process-folder.js'

const prefix = 'stemwork-scratch'

/** Folders for the files of running attempts. All of them lie in one folder of this process that only its user can enter. */
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

  /** Where `folder` has made it, or would. `undefined` as long as nothing was made in this process. */
  async pathOf(name: string): Promise<string | undefined> {
    const root = await this.#root?.catch(() => undefined)
    return root === undefined ? undefined : join(root, name)
  }

  /** Removes the process's folder with all that is in it. */
  async close(): Promise<void> {
    const root = await this.#root?.catch(() => undefined)
    this.#root = undefined
    if (root !== undefined) await rm(root, { recursive: true, force: true })
  }

  /** Removes what processes of this machine left that ended without `close`. */
  async removeLeftovers(): Promise<void> {
    await removeDeadFolders(this.#directory, prefix, this.#logger)
  }

  async #makeRoot(): Promise<string> {
    await mkdir(this.#directory, { recursive: true })
    return await makeProcessFolder(this.#directory, prefix)
  }
}
