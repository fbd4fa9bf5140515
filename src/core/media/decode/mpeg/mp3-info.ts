import { latin1, latin1Bytes, setUint24, viewOf } from '../../bytes.js'
import { mpegHeader } from './frame-sync.js'

/** For MPEG-1 Layer III. */
const samplesPerFrame = 1152
/** Samples that every decoder adds before the audio. */
export const decoderDelay = 529
/** More than the tag and its extension take, wherever they begin. */
const searchedBytes = 200
/** In the third byte of a header. */
const paddingBit = 2

/** Size in bytes of the information frame, by the four-byte header of any frame of the file. */
export function mp3InfoBytes(header: Uint8Array): number {
  const [first, second, third] = header
  return mpegHeader(Uint8Array.of(first!, second!, third! & ~paddingBit), 0)!.frameBytes
}

export interface Mp3Facts {
  frameCount: number
  /** Size of all frames, this one included. */
  bytes: number
  sampleCount: number
  /** Samples that the encoder added before the audio. */
  encoderDelay: number
}

/**
 * A silent frame with information for players: Xing's `Info` tag with LAME's extension, which states the length and how
 * much to cut off at both ends (http://gabriel.mp3-tech.org/mp3infotag.html).
 *
 * @param header of any frame of the file
 */
export function mp3InfoFrame(
  header: Uint8Array,
  { frameCount, bytes, sampleCount, encoderDelay }: Mp3Facts,
): Uint8Array {
  const frame = new Uint8Array(mp3InfoBytes(header))
  const view = viewOf(frame)
  frame.set(header)
  // Unpadded, and without a checksum.
  frame[2]! &= ~paddingBit
  frame[1]! |= 1
  const isMono = header[3]! >> 6 === 3
  const at = 4 + (isMono ? 17 : 32)
  frame.set(latin1Bytes('Info'), at)
  // Flags: frame count, byte count and table of contents follow.
  view.setUint32(at + 4, 7)
  view.setUint32(at + 8, frameCount)
  view.setUint32(at + 12, bytes)
  for (let hundredth = 0; hundredth < 100; hundredth++) frame[at + 16 + hundredth] = (hundredth * 256) / 100
  // Players use the lengths below only if the encoder's name begins like this.
  frame.set(latin1Bytes('LAME-like'), at + 116)
  // Constant bit rate; then low-pass, peak, gains and flags, which are not needed, and the bit rate.
  frame[at + 125] = 1
  frame[at + 136] = 255
  const padding = Math.min(4095, Math.max(0, frameCount * samplesPerFrame - encoderDelay - sampleCount))
  setUint24(view, at + 137, (encoderDelay << 12) | padding)
  view.setUint32(at + 143, bytes)
  return frame
}

/**
 * Reads such a tag, `Xing` or `Info`, from the first frame of a file; undefined if the frame has none.
 *
 * @returns `isExtended`: LAME's extension says how many samples were added before and after the audio
 */
export function readMp3Info(frame: Uint8Array) {
  const bytes = frame.subarray(0, searchedBytes)
  const text = latin1(bytes)
  const at = Math.max(text.indexOf('Xing'), text.indexOf('Info'))
  if (at < 0 || at + 12 > bytes.length) return undefined
  const view = viewOf(bytes)
  const flags = view.getUint32(at + 4)
  const hasCount = (flags & 1) !== 0
  // Counts of frames and bytes, the table of contents, and a quality.
  const extension = at + 8 + (hasCount ? 4 : 0) + (flags & 2 ? 4 : 0) + (flags & 4 ? 100 : 0) + (flags & 8 ? 4 : 0)
  const isExtended = hasCount && extension + 24 <= bytes.length && bytes[extension] !== 0
  const added = isExtended ? view.getUint32(extension + 20) & 0xff_ffff : 0
  return {
    isConstant: text.startsWith('Info', at),
    /** Without this frame. */
    frameCount: hasCount ? view.getUint32(at + 8) : undefined,
    isExtended,
    delay: added >> 12,
    padding: added & 0xfff,
  }
}
