import { latin1Bytes, setUint24, viewOf } from '../../bytes.js'

/** For MPEG-1 Layer III. */
const samplesPerFrame = 1152
const bitrates = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]
const sampleRates = [44_100, 48_000, 32_000]

/** Size in bytes of the information frame, by the four-byte header of any frame of the file. */
export function mp3InfoBytes(header: Uint8Array): number {
  const bitrate = bitrates[header[2]! >> 4]!
  return Math.floor((144_000 * bitrate) / sampleRates[(header[2]! >> 2) & 3]!)
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
  frame[2]! &= ~2
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
