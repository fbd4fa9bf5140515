import { access, constants, mkdir, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { StemworkError } from '../../errors.js'
import type { Logger } from '../../ports/logger.js'
import { removeFolder } from '../../runner/run-folder.js'
import { makeProcessFolder, removeDeadFolders, scratchPrefix } from './process-folder.js'

/** A song of ten minutes needs about this much at a time. */
const fewMiB = 256
/** Short, because other jobs may need less of the disk than the job that found it full. */
const longestRestMs = 5_000

/** Folders for the files of running attempts, inside one folder of this process that only its user can enter. */
export class Scratch {
  /** Parent of the process's folder, which is created when first needed. */
  readonly directory: string
  readonly #logger: Logger
  #root: Promise<string> | undefined
  #fullUntil = 0

  constructor(directory: string, logger: Logger) {
    this.directory = directory
    this.#logger = logger
  }

  /** @throws StemworkError `RUNNER_UNAVAILABLE` if no folder can be made there. */
  async check(): Promise<void> {
    try {
      await mkdir(this.directory, { recursive: true })
      await access(this.directory, constants.W_OK | constants.X_OK)
    } catch (error) {
      throw this.#unusable(error)
    }
  }

  /** Warning to the operator about the disk, without its path; `undefined`: none. */
  async warning(): Promise<string | undefined> {
    const space = await statfs(this.directory).catch(() => undefined)
    // Some file systems do not report their size.
    if (!space || space.blocks === 0) return undefined
    const freeMiB = Math.floor((space.bavail * space.bsize) / 1024 ** 2)
    if (freeMiB >= fewMiB) return undefined
    return (
      `The disk with the files of running jobs has only ${freeMiB} MiB free; jobs that need more wait and are tried ` +
      'again. Free some space, or name a folder on another disk as scratchDirectory.'
    )
  }

  /** Notes that an attempt found the disk full. While its job waits, up to 5 s, the worker leaves jobs to others. */
  noteFull(waitMs: number): void {
    this.#fullUntil = Math.max(this.#fullUntil, performance.now() + Math.min(waitMs, longestRestMs))
  }

  /** Milliseconds for which the worker still leaves jobs to others. */
  get fullMs(): number {
    return Math.max(0, this.#fullUntil - performance.now())
  }

  /** Creates an empty folder for one attempt. */
  async folder(name: string): Promise<string> {
    this.#root ??= this.#makeRoot().catch((error: unknown) => {
      this.#root = undefined
      throw error
    })
    const folder = join(await this.#root, name)
    await mkdir(folder, { mode: 0o700 })
    return folder
  }

  /** Removes the folder of an attempt. Files that cannot be removed now are removed with the process's folder. */
  async remove(folder: string): Promise<void> {
    await removeFolder(folder).catch((error: unknown) =>
      this.#logger.warn({ folder, err: error }, 'Scratch files could not be removed.'),
    )
    // One large job alone may have filled the disk.
    if (this.fullMs > 0 && (await this.warning()) === undefined) this.#fullUntil = 0
  }

  /** The path of an attempt's folder. `undefined` until this process has created any. */
  async pathOf(name: string): Promise<string | undefined> {
    const root = await this.#root?.catch(() => undefined)
    return root === undefined ? undefined : join(root, name)
  }

  /** Removes the process's folder and its content. */
  async close(): Promise<void> {
    const root = await this.#root?.catch(() => undefined)
    this.#root = undefined
    if (root !== undefined) await removeFolder(root)
  }

  /** Removes the leftovers of processes on this machine that ended without `close`. */
  async removeLeftovers(): Promise<void> {
    await removeDeadFolders(this.directory, scratchPrefix, this.#logger)
  }

  async #makeRoot(): Promise<string> {
    await this.check()
    return await makeProcessFolder(this.directory, scratchPrefix)
  }

  #unusable(cause: unknown): unknown {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
    if (!['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'EEXIST'].includes(code)) return cause
    return new StemworkError(
      'RUNNER_UNAVAILABLE',
      `The folder for the files of running jobs cannot be used (${code}): this process must be able to make ` +
        'folders in it. Name another as scratchDirectory, or change its owner.',
      { cause },
    )
  }
}
