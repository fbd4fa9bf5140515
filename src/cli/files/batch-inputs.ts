import type { Dirent, Stats } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { extname, join, relative, resolve, sep } from 'node:path'
import { systemErrorText } from '../terminal/system-error.js'

/** A file to separate, as the search found it. */
export interface BatchInput {
  /** Absolute. */
  path: string
  /** As the user would name it. */
  shown: string
  /** Folders between the named folder and the file, separated by `/`; empty for a file that the user named. */
  folder: string
  bytes: number
  /** Epoch milliseconds. */
  modifiedAt: number
}

/** Inputs found, and the folders and files that could not be read. */
export interface FoundInputs {
  inputs: BatchInput[]
  unreadable: { input: string; message: string }[]
}

const endings = (
  'wav wave w64 bwf aif aiff aifc au snd flac mp3 mp2 m4a m4b mp4 aac ogg oga opus wv wma caf amr tta ac3 eac3 dts ' +
  'mov mkv webm avi 3gp'
).split(' ')
const ffmpegEndings = 'ts mts m2ts mpg mpeg vob flv wmv rm mxf ape mpc dsf dff tak voc'.split(' ')

export interface InputSearch {
  /** The folder of the results; skipped inside a named folder. */
  outputFolder: string
  /** Whether an earlier run made this file. */
  isResult(path: string): boolean
  ffmpeg: boolean
}

/**
 * Finds the named files, and audio and video files (by extension) below the named folders, in the order of their paths.
 * A folder that has disappeared, such as that of an unmounted disk, yields none.
 */
export async function findInputs(sources: readonly string[], search: InputSearch): Promise<FoundInputs> {
  const found = new Map<string, BatchInput>()
  const unreadable: FoundInputs['unreadable'] = []
  const known = new Set([...endings, ...(search.ffmpeg ? ffmpegEndings : [])])
  const add = (path: string, shown: string, folder: string, { size, mtimeMs }: Stats) => {
    if (!found.has(path) && !search.isResult(path))
      found.set(path, { path, shown, folder, bytes: size, modifiedAt: mtimeMs })
  }

  async function walk(root: string, folder: string, shown: string): Promise<void> {
    let entries: Dirent[]
    try {
      entries = await readdir(folder, { withFileTypes: true })
    } catch (error) {
      unreadable.push({ input: shown, message: systemErrorText(error as NodeJS.ErrnoException) })
      return
    }
    entries.sort((a, b) => (a.name < b.name ? -1 : 1))
    for (const entry of entries) {
      const path = join(folder, entry.name)
      if (entry.name.startsWith('.')) continue
      if (entry.isDirectory()) {
        if (path !== search.outputFolder) await walk(root, path, join(shown, entry.name))
        continue
      }
      if (!known.has(extname(entry.name).slice(1).toLowerCase())) continue
      // Follows links; the target, or the file itself, may have disappeared.
      const stats = await stat(path).catch(() => undefined)
      const named = join(shown, entry.name)
      if (stats?.isFile()) add(path, named, relative(root, folder).split(sep).join('/'), stats)
      else if (!stats && entry.name.includes('\u{FFFD}'))
        unreadable.push({ input: named, message: 'The name is not UTF-8, so the file cannot be opened. Rename it.' })
    }
  }

  for (const source of sources) {
    const path = resolve(source)
    const stats = await stat(path).catch(() => undefined)
    if (!stats) continue
    if (stats.isDirectory()) await walk(path, path, source)
    else add(path, source, '', stats)
  }
  return { inputs: [...found.values()], unreadable }
}

/** Decides which files of a folder are complete: the only sign is that they no longer change. */
export class GrowingFiles {
  readonly #seen = new Map<string, string>()
  readonly #taken = new Map<string, string>()

  /** Returns non-empty files that have not changed since the last look and were not yet returned in this state. */
  complete(inputs: readonly BatchInput[]): BatchInput[] {
    return inputs.filter((input) => {
      const state = `${input.bytes} ${input.modifiedAt}`
      const isSteady = this.#seen.get(input.path) === state && input.bytes > 0
      this.#seen.set(input.path, state)
      if (!isSteady || this.#taken.get(input.path) === state) return false
      this.#taken.set(input.path, state)
      return true
    })
  }
}
