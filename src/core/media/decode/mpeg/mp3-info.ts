import { latin1Bytes, setUint24, viewOf } from '../../bytes.js'
import { mpegHeader } from './frame-sync.js'

/** For MPEG-1 Layer III. */
const samplesPerFrame = 1152
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
