/**
 * Consecutive frames that must agree before bytes count as audio. Three agree by chance at about 1 in 10^9 positions.
 */
const framesInARow = 3

/**
 * Finds the first MPEG-1/2/2.5 audio frame (ISO/IEC 11172-3, 2.4.2.3) that is followed by frames of the same stream. In
 * a short buffer, fewer frames suffice if the buffer starts with one.
 *
 * @param frames how many frames must agree
 */
export function findMpegAudio(bytes: Uint8Array, frames = framesInARow) {
  for (let position = 0; position + 4 <= bytes.length; position++) {
    const first = mpegHeader(bytes, position)
    if (!first) continue
    if (first.frameBytes === 0) {
      // Free format does not state the frame length. A second identical header within the longest possible frame
      // confirms it.
      if (position === 0 && hasSameStreamId(bytes, first.streamId)) return { ...first, position, isFreeFormat: true }
      continue
    }
    const next = (at: number) => {
      const header = mpegHeader(bytes, at)
      return header && header.streamId === first.streamId ? header.frameBytes : 0
    }
    if (agrees(bytes, position, next, frames)) return { ...first, position, isFreeFormat: false }
  }
  return undefined
}

/** Finds the first ADTS frame (ISO/IEC 14496-3, 1.A.2) that is followed by others; its position, or undefined. */
export function findAdts(bytes: Uint8Array): number | undefined {
  for (let position = 0; position + 7 <= bytes.length; position++) {
    if (agrees(bytes, position, (at) => adtsFrameBytes(bytes, at))) return position
  }
  return undefined
}

function agrees(
  bytes: Uint8Array,
  position: number,
  frameBytes: (at: number) => number,
  frames = framesInARow,
): boolean {
  let at = position
  for (let frame = 0; frame < frames; frame++) {
    if (at + 7 > bytes.length) return position === 0 && frame > 0
    const length = frameBytes(at)
    if (length === 0) return false
    at += length
  }
  return true
}

function adtsFrameBytes(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== 0xff || (bytes[at + 1]! & 0xf6) !== 0xf0 || ((bytes[at + 2]! >> 2) & 15) > 12) return 0
  const length = ((bytes[at + 3]! & 3) << 11) | (bytes[at + 4]! << 3) | (bytes[at + 5]! >> 5)
  return length >= 7 ? length : 0
}

/** kbit/s by [MPEG-1 layers I, II, III; MPEG-2 layer I; MPEG-2 layers II and III]. */
const bitRates: readonly (readonly number[])[] = [
  [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
  [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
  [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
  [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
]
const mpeg1Rates = [44_100, 48_000, 32_000]

export interface MpegHeader {
  /** Version, layer and sample rate, which all frames of a stream share. */
  streamId: number
  /** 0 for free format. */
  frameBytes: number
  /** In bits per second. */
  bitRate: number
  sampleRate: number
  samplesPerFrame: number
}

/** The header of an MPEG audio frame, if there is one at this position. */
// oxlint-disable-next-line complexity -- the fields of one header, each by a table
export function mpegHeader(bytes: Uint8Array, at: number): MpegHeader | undefined {
  if (bytes[at] !== 0xff || (bytes[at + 1]! & 0xe0) !== 0xe0) return undefined
  const version = (bytes[at + 1]! >> 3) & 3
  const layer = 4 - ((bytes[at + 1]! >> 1) & 3)
  const bitRateIndex = bytes[at + 2]! >> 4
  const rateIndex = (bytes[at + 2]! >> 2) & 3
  if (version === 1 || layer === 4 || bitRateIndex === 15 || rateIndex === 3) return undefined
  const isMpeg1 = version === 3
  const sampleRate = mpeg1Rates[rateIndex]! / (isMpeg1 ? 1 : version === 2 ? 2 : 4)
  const bitRate = bitRates[isMpeg1 ? layer - 1 : layer === 1 ? 3 : 4]![bitRateIndex]! * 1000
  const padding = (bytes[at + 2]! >> 1) & 1
  const streamId = (version << 4) | (layer << 2) | rateIndex
  const samplesPerFrame = layer === 1 ? 384 : layer === 3 && !isMpeg1 ? 576 : 1152
  const slotBytes = layer === 1 ? 4 : 1
  const slots = Math.floor((samplesPerFrame * bitRate) / 8 / slotBytes / sampleRate) + padding
  return { streamId, sampleRate, samplesPerFrame, bitRate, frameBytes: bitRate === 0 ? 0 : slots * slotBytes }
}

function hasSameStreamId(bytes: Uint8Array, streamId: number): boolean {
  for (let at = 24; at < Math.min(bytes.length - 4, 8192); at++) {
    const header = mpegHeader(bytes, at)
    if (header?.streamId === streamId && header.frameBytes === 0) return true
  }
  return false
}
