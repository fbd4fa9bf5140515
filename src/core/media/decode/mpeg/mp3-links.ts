import { concat, latin1Bytes } from '../../bytes.js'
import { type EncodedPieces, mostLinks } from '../codec-stream.js'
import { findMpegAudio, mpegHeader } from './frame-sync.js'

/** More than an information frame and the header after it. */
const heldBytes = 4096
const tags = ['Xing', 'Info'].map(latin1Bytes)
/** Bytes from the start of a frame to the tag: the header and the side information, by version and channels. */
const tagOffsets = [13, 21, 36]

/**
 * Splits files that were joined end to end at each frame with information for players (`Xing` or `Info`), which states
 * the delay and the padding of the audio after it. Each link must be read before the next.
 */
export async function* mp3Links(pieces: EncodedPieces): AsyncGenerator<EncodedPieces, void, undefined> {
  let bytes: Uint8Array = new Uint8Array(0)
  let isEnd = false
  let links = 0

  async function* link(): EncodedPieces {
    // The frame that begins this link must not begin another link.
    let hasAudio = false
    let from = 1
    for (;;) {
      const at = links < mostLinks ? infoFrameAt(bytes, from) : undefined
      const before = at === undefined ? bytes.subarray(0, isEnd ? undefined : -heldBytes) : bytes.subarray(0, at)
      hasAudio ||= findMpegAudio(before) !== undefined
      if (at !== undefined && !hasAudio) {
        from = at + 1
        continue
      }
      bytes = bytes.subarray(before.length)
      from = Math.max(0, from - before.length)
      if (before.length > 0) yield before
      if (at !== undefined || isEnd) return
      const next = await pieces.next()
      if (next.done) isEnd = true
      else bytes = bytes.length === 0 ? next.value : concat([bytes, next.value])
    }
  }

  do {
    links++
    const next = link()
    yield next
    for await (const _ of next);
  } while (bytes.length > 0)
}

/** Position of the next whole information frame that is followed by a frame of the same stream. */
function infoFrameAt(bytes: Uint8Array, from: number): number | undefined {
  for (let tag = nextTag(bytes, from); tag !== undefined; tag = nextTag(bytes, tag + 1)) {
    for (const offset of tagOffsets) {
      const at = tag - offset
      const header = at >= from ? mpegHeader(bytes, at) : undefined
      const next = header && header.frameBytes > 0 ? mpegHeader(bytes, at + header.frameBytes) : undefined
      if (next && next.streamId === header?.streamId) return at
    }
  }
  return undefined
}

function nextTag(bytes: Uint8Array, from: number): number | undefined {
  const found = tags.map((tag) => positionOf(tag, bytes, from)).filter((at) => at !== undefined)
  return found.length > 0 ? Math.min(...found) : undefined
}

function positionOf(text: Uint8Array, bytes: Uint8Array, from: number): number | undefined {
  for (let at = bytes.indexOf(text[0]!, from); at >= 0; at = bytes.indexOf(text[0]!, at + 1))
    if (text.every((byte, index) => bytes[at + index] === byte)) return at
  return undefined
}
