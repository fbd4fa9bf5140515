/** Tags of an audio file. Texts are not empty and have no control characters. */
export interface AudioTags {
  title?: string
  artist?: string
  album?: string
  /** The number, or the number and the total: `3/12`. */
  track?: string
  /** The year, possibly with month and day. */
  date?: string
  genre?: string
  /** Beats per minute, an integer. Written, but not read: it may be of another tempo than the result's. */
  bpm?: string
  /** Written, but not read: the tonic, and `m` for minor, such as `F#m`. */
  key?: string
  cover?: Cover
  /** Size of a picture that was left out, because it is larger than `maxCoverBytes`. */
  largeCoverBytes?: number
}

export interface Cover {
  contentType: 'image/jpeg' | 'image/png'
  bytes: Uint8Array
}

export type TextTag = Exclude<keyof AudioTags, 'cover' | 'largeCoverBytes'>

/** Larger covers are left out. */
export const maxCoverBytes = 4 * 1024 * 1024

const maxTextLength = 500

/** Adds a text, unless that tag is set or nothing remains of the text without control characters and spaces. */
export function addText(tags: AudioTags, name: TextTag, text: string): void {
  const clean = Array.from(cleanText(text)).slice(0, maxTextLength).join('').trim()
  if (clean !== '') tags[name] ??= clean
}

/** Removes control characters, marks that change the direction of writing, and halves of characters. */
export function cleanText(text: string): string {
  return text
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .replace(/[\p{Cs}\p{Co}\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/gu, '')
    .trim()
}

/** Adds a picture, unless there is one already, or it is too large or neither JPEG nor PNG. */
export function addCover(tags: AudioTags, bytes: Uint8Array): void {
  const contentType = pictureType(bytes)
  if (contentType === undefined) return
  if (bytes.length > maxCoverBytes) tags.largeCoverBytes ??= bytes.length
  // A copy, so that the other bytes read can be freed.
  else tags.cover ??= { contentType, bytes: Uint8Array.from(bytes) }
}

/** The tags, completed with those that only the others have. */
export function mergedTags(tags: AudioTags, others: AudioTags): AudioTags {
  return { ...others, ...tags }
}

function pictureType([a, b, c, d]: Uint8Array): Cover['contentType'] | undefined {
  if (a === 0xff && b === 0xd8 && c === 0xff) return 'image/jpeg'
  return a === 0x89 && b === 0x50 && c === 0x4e && d === 0x47 ? 'image/png' : undefined
}
