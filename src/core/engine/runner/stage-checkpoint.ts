import { realpath, rename, rm, stat } from 'node:fs/promises'
import { dirname, join, resolve, sep } from 'node:path'
import { internalError } from '../errors.js'
import type { RunCheckpoint, WorkOrder } from '../ports/runner.js'
import type { Checkpoint } from '../workflow/checkpoint.js'

/**
 * The longer an attempt runs, the less often it keeps a part: the pause between two parts is this share of its time,
 * but at most this many times `everyMs`.
 */
const shareOfWork = 0.025
const longestPause = 30

/** File name of a part in the run's folder. */
export function partName(part: number): string {
  return `checkpoint-${part}`
}

/** The checkpoint as seen by the stages of one run. Parts are sent to the host one at a time. */
export function stageCheckpoint(
  directory: string,
  { parts, afterMs, everyMs, maxBytes }: NonNullable<WorkOrder['checkpoint']>,
  host: RunCheckpoint,
  clock = () => performance.now(),
): Checkpoint {
  const startedAt = clock()
  let lastAt = startedAt
  /** Number of the next part. */
  let next = parts.length
  let keptBytes = parts.reduce((sum, { bytes }) => sum + bytes, 0)
  let isOn = true
  let isStoring = false

  const stop = () => {
    if (isOn) host.stopped()
    isOn = false
  }

  return {
    get parts() {
      return parts
    },
    get isOn() {
      return isOn
    },

    isDue() {
      if (!isOn || isStoring) return false
      if (host.handBack.aborted) return true
      const now = clock()
      const workMs = now - startedAt
      if (next === 0) return workMs >= afterMs
      return now - lastAt >= Math.min(Math.max(everyMs, shareOfWork * workMs), longestPause * everyMs)
    },

    async keep(path) {
      const file = await fileOfRun(directory, path)
      const part = next
      try {
        const { size } = await stat(file)
        keptBytes += size
        if (!isOn || keptBytes > maxBytes) {
          stop()
          return await rm(file, { force: true })
        }
        await rename(file, join(directory, partName(part)))
      } catch {
        return stop()
      }
      next++
      isStoring = true
      void host.store(part).then(() => {
        isStoring = false
        lastAt = clock()
      })
    },

    stop,

    restart() {
      parts = []
      next = 0
      keptBytes = 0
    },
  }
}

/** The checkpoint of a run that keeps nothing. @param directory of the run */
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
 * The absolute path of a file in the run's folder; relative paths start there.
 *
 * @throws StemworkError `INTERNAL_ERROR` for a file elsewhere, because `keep` moves or removes the file.
 */
async function fileOfRun(directory: string, path: string): Promise<string> {
  const file = resolve(directory, path)
  const [folder, root] = await Promise.all([realpath(dirname(file)).catch(() => undefined), realpath(directory)])
  if (folder === root || folder?.startsWith(root + sep)) return file
  const why = folder === undefined ? 'whose folder does not exist' : "which is not in the run's folder"
  throw internalError(new Error(`checkpoint.keep was given ${path}, ${why}. Write the part in \`directory\`.`))
}
