import { concat, latin1, synchsafe, viewOf } from '../../bytes.js'
import type { EncodedPieces } from '../codec-stream.js'
import { mpegHeader } from './frame-sync.js'

/** More than a frame and the header after it. */
const heldBytes = 4096

/**
 * Counts the bytes between frames that are neither frames nor tags: decoders skip them without a word, and most MP3
 * files state no length that would tell. Bytes before the first frame and after the last one do not count.
 */
export function mp3Damage() {
  let rest: Uint8Array = new Uint8Array(0)
  /** Bytes of a tag that are still to come. */
  let coming = 0
  let streamId: number | undefined
  let isInStep = false
  let [skipped, lost] = [0, 0]

  function walk(bytes: Uint8Array, end: number): void {
    let at = coming
    while (at < end) at += step(bytes, at)
    rest = bytes.subarray(at)
    coming = Math.max(0, at - bytes.length)
  }

  function step(bytes: Uint8Array, at: number): number {
    const header = mpegHeader(bytes, at)
    if (header && header.frameBytes > 0) {
      const { frameBytes } = header
      // Out of step, what looks like a header needs another one after its frame.
      const next = isInStep ? streamId : mpegHeader(bytes, at + frameBytes)?.streamId
      if (next === header.streamId) {
        if (streamId !== undefined) lost += skipped
        skipped = 0
        isInStep = true
        streamId = next
        return frameBytes
      }
    }
    isInStep = false
    const tag = tagBytes(bytes, at)
    if (tag === 0) skipped++
    return Math.max(1, tag)
  }

  return {
    async *watched(pieces: EncodedPieces): EncodedPieces {
      for await (const piece of pieces) {
        const bytes = concat([rest, piece])
        walk(bytes, bytes.length - heldBytes)
        yield piece
      }
      walk(rest, rest.length)
    },
    /** Complete once all pieces have been read. */
    warnings: () =>
      lost > 0
        ? [`${lost} bytes in the middle of the MP3 file are no sound and were skipped; the file is damaged.`]
        : [],
  }
}

/** The first letters of the tags: most bytes can be passed over without reading a name. */
const initials = [0x54, 0x41, 0x49]

/** Length of the tag that begins here, as between joined files; 0 if none does. */
function tagBytes(bytes: Uint8Array, at: number): number {
  if (!initials.includes(bytes[at]!)) return 0
  const name = latin1(bytes.subarray(at, at + 8))
  if (name.startsWith('TAG')) return 128
  if (name === 'APETAGEX' && at + 16 <= bytes.length) return 32 + viewOf(bytes).getUint32(at + 12, true)
  return name.startsWith('ID3') ? 10 + synchsafe(bytes, at + 6) : 0
}
