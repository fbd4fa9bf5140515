import { type AudioTags, cleanText, maxCoverBytes } from './audio-tags.js'
import { readTags } from './read-tags.js'

export interface SongTags {
  /** The song's title, else its file's name, as a part of a file name; `undefined` if neither is known. */
  song: string | undefined
  /** Tags of the song's file, for a file that holds the whole song. */
  whole: AudioTags
  /** Tags for a stem's file; none if the song's file has none. */
  ofStem(stem: string): AudioTags
  /** Sentences on what was left out. */
  warnings: readonly string[]
}

/** @param input a local file, and its original name */
export async function songTags({ path, name }: { path: string; name?: string }): Promise<SongTags> {
  const { largeCoverBytes, ...tags } = await readTags(path)
  const title = tags.title ?? (name === undefined ? undefined : cleanText(name.replace(/\.[^.]{1,5}$/, '')))
  return {
    song: title === undefined ? undefined : songName(title),
    whole: tags,
    ofStem: (stem) =>
      Object.keys(tags).length === 0 ? {} : { ...tags, title: title ? `${stem} (stems of ${title})` : stem },
    warnings: tags.cover === undefined && largeCoverBytes !== undefined ? [coverText(largeCoverBytes)] : [],
  }
}

function coverText(bytes: number): string {
  const mebibytes = (value: number) => `${(value / 2 ** 20).toFixed(1)} MiB`
  return `The cover of ${mebibytes(bytes)} was left out: at most ${mebibytes(maxCoverBytes)} are kept.`
}

const maxSongNameBytes = 150

/**
 * A song's name as a part of a file name on any system: without path separators, characters that Windows forbids
 * and control characters, and not too long.
 *
 * @returns `undefined` if nothing is left
 */
export function songName(text: string): string | undefined {
  const name = withoutOuterDots(cut(safeText(text), maxSongNameBytes))
  return /[\p{L}\p{N}]/u.test(name) ? name : undefined
}

/** Replaces path separators and characters that Windows forbids. */
export function safeText(text: string): string {
  return cleanText(text.normalize('NFC'))
    .replace(/[/\\:*?"<>|]+/g, '_')
    .replace(/\s+/g, ' ')
}

/** Files whose names begin with a dot are hidden; Windows removes dots and spaces at the end. */
export function withoutOuterDots(name: string): string {
  return name.replace(/^[. ]+|[. ]+$/g, '')
}

/** The beginning of a text, in whole characters. */
export function cut(text: string, maxBytes: number): string {
  const characters = Array.from(text)
  let bytes = Buffer.byteLength(text)
  while (bytes > maxBytes) bytes -= Buffer.byteLength(characters.pop() ?? '')
  return characters.join('')
}
