import { basename, dirname, parse } from 'node:path'
import type { AudioTags } from '../../core/media/tags/audio-tags.js'
import { notOfADevice } from '../../core/engine/job/download-name.js'
import { cut, safeText, withoutOuterDots } from '../../core/media/tags/song-tags.js'
import { UsageError } from '../command.js'
import type { BatchInput } from './batch-inputs.js'

/** The fields that a template can use; each has a substitute for songs that lack it. */
export interface SongNames {
  tags: AudioTags
  /** Name of the song's file, see `fileNames`. */
  file: string
  /** Folders between the named folder and the file, separated by `/`; empty if there are none. */
  folder: string
}

const fields: Record<string, (song: SongNames, stem: string) => string> = {
  artist: ({ tags }) => tags.artist ?? 'Unknown artist',
  title: ({ tags, file }) => tags.title ?? file,
  album: ({ tags }) => tags.album ?? 'Unknown album',
  track: ({ tags }) => (/^\d+/.exec(tags.track ?? '')?.[0] ?? '0').padStart(2, '0'),
  year: ({ tags }) => /\d{4}/.exec(tags.date ?? '')?.[0] ?? 'Unknown year',
  genre: ({ tags }) => tags.genre ?? 'Unknown genre',
  file: ({ file }) => file,
  stem: (_song, stem) => stem,
}

/** The names of the fields, `folder` among them, for the help. */
export const nameFields = [...Object.keys(fields), 'folder']

const folderField = '{folder}'
/** File systems allow 255 bytes; the rest is for a number and the ending. */
const maxSegmentBytes = 220
const maxLiteralBytes = 120
/** Byte limits of each value, tried in order until a segment is short enough. */
const valueLimits = [maxSegmentBytes, 120, 80, 40, 20, 8]

/** Template for the names of results, such as `{artist}/{title} - {stem}`. */
export class NameTemplate {
  readonly text: string
  readonly #segments: readonly string[]

  /** @throws UsageError for an unknown field, none for the stem, or text that is too long */
  constructor(text: string) {
    this.text = text
    this.#segments = text.split(/[/\\]+/).filter((segment) => segment !== '')
    for (const segment of this.#segments) {
      const literal = segment.replace(/\{(\w*)\}/g, (field, name: string) => {
        if (nameFields.includes(name) && (field !== folderField || segment === folderField)) return ''
        throw new UsageError(
          field === folderField
            ? '--name: {folder} must stand between slashes, for example "{folder}/{file} - {stem}".'
            : `--name knows ${nameFields.map((each) => `{${each}}`).join(', ')}, not ${field}.`,
        )
      })
      if (/[{}]/.test(literal)) throw new UsageError(`--name: "${segment}" has an unmatched brace.`)
      if (Buffer.byteLength(literal) > maxLiteralBytes)
        throw new UsageError(`--name: "${segment}" has more than ${maxLiteralBytes} bytes besides its fields.`)
    }
    if (!this.#segments.at(-1)?.includes('{stem}'))
      throw new UsageError('--name must have {stem} in the name of the file, for example "{artist}/{title} - {stem}".')
  }

  /**
   * Path of a stem's file below the folder of the results, separated by `/`, without its ending. Safe on every file
   * system.
   */
  pathOf(song: SongNames, stem: string): string {
    const segments = this.#segments.flatMap((segment) =>
      segment === folderField
        ? song.folder.split('/').flatMap((name) => (name === '' ? [] : [safeName(name)]))
        : [rendered(segment, song, stem)],
    )
    return segments.join('/')
  }
}

/** The name of a folder, safe on every file system, with room for a few more characters. */
export function safeName(text: string): string {
  return safeSegment(cut(text, maxSegmentBytes))
}

/**
 * By path, what `{file}` is for each file: its name without the ending; with it, and after the folder, where results of
 * several would otherwise have one name.
 */
export function fileNames(
  inputs: readonly Pick<BatchInput, 'path' | 'folder'>[],
  template: NameTemplate,
): ReadonlyMap<string, string> {
  const formsOf = inputs.map(({ path, folder }) =>
    [parse(path).name, basename(path), `${basename(dirname(path))}_${basename(path)}`].map((file) => {
      return { file, key: sameNameKey(template.pathOf({ tags: {}, file, folder }, 'stem')) }
    }),
  )
  const counts = new Map<string, number>()
  for (const forms of formsOf)
    for (const key of new Set(forms.map((form) => form.key))) counts.set(key, (counts.get(key) ?? 0) + 1)
  return new Map(
    formsOf.map((forms, index) => {
      const form = forms.find(({ key }) => counts.get(key) === 1) ?? forms.at(-1)
      return [inputs[index]?.path ?? '', form?.file ?? '']
    }),
  )
}

/** Equal for names that some file system treats as the same. */
export function sameNameKey(path: string): string {
  return path.normalize('NFKC').toUpperCase().toLowerCase()
}

function rendered(segment: string, song: SongNames, stem: string): string {
  let name = ''
  for (const limit of valueLimits) {
    name = safeSegment(
      segment.replace(/\{(\w+)\}/g, (_field, field: string) => cut(safeText(fields[field]?.(song, stem) ?? ''), limit)),
    )
    if (Buffer.byteLength(name) <= maxSegmentBytes) break
  }
  return name
}

function safeSegment(text: string): string {
  const name = withoutOuterDots(safeText(text))
  return name === '' ? '_' : notOfADevice(name)
}
