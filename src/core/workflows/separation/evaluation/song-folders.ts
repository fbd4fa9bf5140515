import { readdir, stat } from 'node:fs/promises'
import { basename, join, parse, relative, resolve } from 'node:path'
import { badInput, StemworkError } from '../../../engine/errors.js'
import { fileExtensions } from '../../../media/decode/file-extensions.js'

/** A song with its true stems; paths of audio files. */
export interface SongFolder {
  /** Path of its folder, relative to the evaluated folder. */
  name: string
  vocals: string
  /** Files whose sum is the accompaniments. */
  accompaniments: string[]
  /** Absent: the sum of all stems. */
  mixture?: string
}

const musdbParts = ['drums', 'bass', 'other'] as const
const fileNames = ['mixture', 'vocals', 'accompaniments', ...musdbParts] as const
const extensions = fileExtensions(false)
/** `<dir>/<song>` and MUSDB's `<dir>/test/<song>`. */
const deepest = 2
const layout =
  'vocals.* and accompaniments.*, or like MUSDB vocals.*, drums.*, bass.* and other.*; mixture.* if there is one'

/**
 * The songs of a folder, ordered by name: the folder itself, or folders up to two levels below it.
 *
 * @throws StemworkError `NOT_FOUND` when there is no such folder; `BAD_INPUT` when it has no song or a song lacks a
 * stem
 */
export async function findSongs(directory: string): Promise<SongFolder[]> {
  const found = await stat(directory).catch(() => undefined)
  if (!found) throw new StemworkError('NOT_FOUND', `There is no folder "${directory}".`)
  if (!found.isDirectory())
    throw badInput(
      'unsupported_format',
      `"${directory}" is not a folder. Expected one with a folder for each song: ${layout}.`,
    )
  const songs = await songsIn(directory, resolve(directory), deepest)
  if (songs.length > 0) return songs
  throw badInput('no_audio', `There is no song in "${directory}". Expected a folder for each song: ${layout}.`)
}

async function songsIn(directory: string, root: string, depth: number): Promise<SongFolder[]> {
  const names = (await readdir(directory))
    .filter((name) => !name.startsWith('.'))
    .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
  const song = songOf(directory, relative(root, directory) || basename(root), names)
  if (song) return [song]
  if (depth === 0) return []
  const songs: SongFolder[] = []
  for (const name of names) {
    const path = join(directory, name)
    if ((await stat(path)).isDirectory()) songs.push(...(await songsIn(path, root, depth - 1)))
  }
  return songs
}

/** Undefined for a folder without stems. */
function songOf(directory: string, name: string, entries: readonly string[]): SongFolder | undefined {
  const files = new Map<string, string>()
  for (const entry of entries) {
    const { name: stem, ext } = parse(entry)
    if (!fileNames.some((known) => known === stem) || !extensions.includes(ext.slice(1).toLowerCase())) continue
    const other = files.get(stem)
    if (other !== undefined)
      throw badInput(
        'unsupported_format',
        `The song "${name}" has two files for ${stem}: ${basename(other)} and ${entry}. Keep one of them.`,
      )
    files.set(stem, join(directory, entry))
  }
  if (files.size === 0) return undefined
  const path = (stem: string): string => {
    const found = files.get(stem)
    if (found !== undefined) return found
    throw badInput('no_audio', `The song "${name}" has no ${stem}. Expected ${layout}.`)
  }
  const isMusdb = !files.has('accompaniments') && musdbParts.some((part) => files.has(part))
  return {
    name,
    vocals: path('vocals'),
    accompaniments: isMusdb ? musdbParts.map(path) : [path('accompaniments')],
    mixture: files.get('mixture'),
  }
}
