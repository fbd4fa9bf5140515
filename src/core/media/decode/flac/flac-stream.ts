import { concat } from '../../bytes.js'
import { decodeFrame, longestHeader, readFrameHeader, type FlacFrameHeader, type FlacStreamInfo } from './flac-frame.js'
import { longestGapSeconds, silence } from '../lost-audio.js'

/** Losses of a damaged stream. */
export interface FlacLosses {
  /** Stretches without an intact frame. */
  frames: number
  /** Samples per channel that were replaced by silence. */
  samples: number
}

/** A decoded frame, or silence in place of lost frames. */
export interface DecodedFrame {
  header: FlacFrameHeader
  channels: Float32Array[]
}

/**
 * Bytes that only look like a frame cost the time of decoding one. Beyond this limit, the rest of the file is skipped.
 */
const mostFailures = 1000

/**
 * Decodes FLAC frames (RFC 9639, 9). The first intact frame fixes rate, channels and bits; later frames that differ are
 * skipped as damaged. Updates `losses` as it reads.
 */
export async function* decodeFrames(
  pieces: AsyncGenerator<Uint8Array, void, undefined>,
  info: FlacStreamInfo,
  losses: FlacLosses,
): AsyncGenerator<DecodedFrame, void, undefined> {
  const input = new Input(pieces)
  const timeline = new Timeline()
  let failures = 0
  let isIntact = true
  for (;;) {
    if (!(await input.has(longestHeader))) return
    const found = await frameAt(input, info, timeline.first)
    if (found && !found.frame && ++failures > mostFailures) return
    const gap = found?.frame && timeline.gapBefore(found.header)
    if (!found?.frame || gap === undefined) {
      if (isIntact) losses.frames++
      isIntact = false
      input.toNextSync()
      continue
    }
    const { header, frame } = found
    isIntact = true
    input.at += frame.bytes
    losses.samples += gap
    yield* silence(gap, header.channelCount, { header })
    yield { header, channels: frame.samples.map((samples) => scaled(samples, header.bits)) }
  }
}

/** Where frames belong, by their numbers. */
class Timeline {
  /** The first frame of the stream, or of the last one that was joined to it. */
  first: FlacFrameHeader | undefined
  #next = 0
  /** Position of the first sample in the stream's numbering: not 0 if the start was cut off, or a number was wrong. */
  #origin = 0

  /** The samples that are missing before an intact frame; undefined if it belongs before the last one. */
  gapBefore(header: FlacFrameHeader): number | undefined {
    const position = startOf(header, this.first ?? header)
    // Streams are joined in recordings of a radio station; each counts from 0.
    const isJoint = position === 0 && this.#next > 0
    if (isJoint) this.#origin = -this.#next
    let gap = position - this.#origin - this.#next
    if (gap < 0) return undefined
    if (isJoint || !this.first) this.first = header
    if (gap > longestGapSeconds * this.first.sampleRate) {
      this.#origin += gap
      gap = 0
    }
    this.#next += gap + header.blockSize
    return gap
  }
}

/** The frame at this position; `undefined` without a plausible header, no `frame` if only the header is intact. */
async function frameAt(input: Input, info: FlacStreamInfo, first: FlacFrameHeader | undefined) {
  const header = readFrameHeader(input.bytes, input.at, info)
  if (!header || !(first ? isLike(header, first) : header.sampleRate > 0)) return undefined
  await input.has(largestFrame(header))
  return { header, frame: decodeFrame(input.bytes, input.at, header) }
}

/** The bytes from `at` on, as far as they were read. */
class Input {
  readonly #pieces: AsyncGenerator<Uint8Array, void, undefined>
  #isEnd = false
  bytes: Uint8Array = new Uint8Array(0)
  at = 0

  constructor(pieces: AsyncGenerator<Uint8Array, void, undefined>) {
    this.#pieces = pieces
  }

  /** Reads until `wanted` bytes are available or the input ends; false if nothing is left. */
  async has(wanted: number): Promise<boolean> {
    let available = this.bytes.length - this.at
    if (available < wanted && !this.#isEnd) {
      const parts = [this.bytes.subarray(this.at)]
      while (available < wanted && !this.#isEnd) {
        const piece = await this.#pieces.next()
        if (piece.done) {
          this.#isEnd = true
        } else {
          parts.push(piece.value)
          available += piece.value.length
        }
      }
      this.bytes = concat(parts)
      this.at = 0
    }
    return available > 0
  }

  toNextSync(): void {
    const found = this.bytes.indexOf(0xff, this.at + 1)
    this.at = found < 0 ? this.bytes.length : found
  }
}

function isLike(header: FlacFrameHeader, { channelCount, bits, sampleRate }: FlacFrameHeader): boolean {
  return header.channelCount === channelCount && header.bits === bits && header.sampleRate === sampleRate
}

/** Streams that number frames, not samples, have frames of the first one's size; only the last is shorter. */
function startOf({ position }: FlacFrameHeader, first: FlacFrameHeader): number {
  return 'sample' in position ? position.sample : position.frame * first.blockSize
}

/** Upper bound of a frame's size in bytes: incompressible samples are stored verbatim. */
function largestFrame({ blockSize, channelCount, bits, headerBytes }: FlacFrameHeader): number {
  return headerBytes + Math.ceil((blockSize * channelCount * (bits + 1)) / 8) + channelCount * 8 + 2
}

function scaled(samples: Int32Array | Float64Array, bits: number): Float32Array {
  const scale = 2 ** (1 - bits)
  const plane = new Float32Array(samples.length)
  for (let index = 0; index < plane.length; index++) plane[index] = samples[index]! * scale
  return plane
}
