import { realpath, rename, rm, stat } from 'node:fs/promises'
import { dirname, join, resolve, sep } from 'node:path'
import { internalError } from '../errors.js'
import type { KeptPart, RunCheckpoint, WorkOrder } from '../ports/runner.js'
import type { Checkpoint } from '../workflow/checkpoint.js'

/**
 * The longer an attempt runs, the less often it keeps a part: after this share of its time, but at most this many times
 * `everyMs`.
 */
const shareOfWork = 0.025
const longestPause = 30

/** File name of a part in the run's folder. */
export function partName(part: number): string {
  return `checkpoint-${part}`
}

/** The checkpoint as seen by the stages of one run. One part at a time is being sent to the host. */
export class StageCheckpoint implements Checkpoint {
  parts: readonly KeptPart[]
  readonly #directory: string
  readonly #limits: NonNullable<WorkOrder['checkpoint']>
  readonly #host: RunCheckpoint
  readonly #clock: () => number
  readonly #startedAt: number
  /** Number of the next part. */
  #next: number
  #bytes: number
  #lastAt: number
  #isOn = true
  #isStoring = false

  constructor(
    directory: string,
    checkpoint: NonNullable<WorkOrder['checkpoint']>,
    host: RunCheckpoint,
    clock = () => performance.now(),
  ) {
    this.#directory = directory
    this.#limits = checkpoint
    this.#host = host
    this.#clock = clock
    this.parts = checkpoint.parts
    this.#next = checkpoint.parts.length
    this.#bytes = checkpoint.parts.reduce((sum, { bytes }) => sum + bytes, 0)
    this.#startedAt = this.#lastAt = clock()
  }

  get isOn(): boolean {
    return this.#isOn
  }

  isDue(): boolean {
    if (!this.#isOn || this.#isStoring) return false
    if (this.#host.handBack.aborted) return true
    const { afterMs, everyMs } = this.#limits
    const now = this.#clock()
    const workMs = now - this.#startedAt
    if (this.#next === 0) return workMs >= afterMs
    return now - this.#lastAt >= Math.min(Math.max(everyMs, shareOfWork * workMs), longestPause * everyMs)
  }

  async keep(path: string): Promise<void> {
    const file = await fileOfRun(this.#directory, path)
    const part = this.#next
    try {
      const { size } = await stat(file)
      this.#bytes += size
      if (!this.#isOn || this.#bytes > this.#limits.maxBytes) {
        this.#isOn = false
        return await rm(file, { force: true })
      }
      await rename(file, join(this.#directory, partName(part)))
    } catch {
      this.#isOn = false
      return
    }
    this.#next++
    this.#isStoring = true
    void this.#host.store(part).then(() => {
      this.#isStoring = false
      this.#lastAt = this.#clock()
    })
  }

  stop(): void {
    this.#isOn = false
  }

  restart(): void {
    this.parts = []
    this.#next = 0
    this.#bytes = 0
  }
}

/** For runs that keep nothing. @param directory of the run */
export function noCheckpoint(directory: string): Checkpoint {
  return {
    parts: [],
    isOn: false,
    isDue: () => false,
    keep: async (path) => await rm(await fileOfRun(directory, path), { force: true }),
    stop() {},
    restart() {},
  }
}

/**
 * The path of a file in the run's folder, to which relative paths refer.
 *
 * @throws StemworkError `INTERNAL_ERROR` for one elsewhere: what is kept is moved, and what is not is removed.
 */
async function fileOfRun(directory: string, path: string): Promise<string> {
  const file = resolve(directory, path)
  const [folder, root] = await Promise.all([realpath(dirname(file)).catch(() => undefined), realpath(directory)])
  if (folder === root || folder?.startsWith(root + sep)) return file
  const why = folder === undefined ? 'whose folder does not exist' : "which is not in the run's folder"
  throw internalError(new Error(`checkpoint.keep was given ${path}, ${why}. Write the part in \`directory\`.`))
}
