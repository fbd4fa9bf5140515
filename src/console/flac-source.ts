import { type FlacStreamInfo, longestHeader, readFrameHeader, readStreamInfo } from '../core/media/decode/flac-frame.js'
import { decodeAudio, type OpenFile, type PcmSource } from './pcm.js'

interface FlacInfo {
  stream: FlacStreamInfo
  /** Samples per channel of every frame but the last. */
  blockSize: number
  frames: number
  /** Signature and stream information, which turn any run of frames into a file of its own. */
  prefix: Uint8Array<ArrayBuffer>
}

/** A frame's position in the file. */
interface Mark {
  /** Index of its first sample. */
  sample: number
  byte: number
}

const magic = 0x664c_6143
const infoBytes = 34
const blockHeadBytes = 4
/** Bytes that are read around a guessed position. */
const marginBytes = 24 * 1024
const maxProbes = 12

/**
 * A FLAC file of fixed block size, read piece by piece: a position is guessed from its neighbours, then found by the
 * frames' own numbers.
 */
export async function openFlac(file: OpenFile): Promise<PcmSource | undefined> {
  const head = new DataView(file.head)
  if (head.byteLength < 42 || head.getUint32(0) !== magic) return undefined
  const info = infoOf(head)
  if (!info) return undefined
  const audioStart = await audioStartOf(file)
  return new FlacSource(info, audioStart, file)
}

function infoOf(head: DataView): FlacInfo | undefined {
  const [smallest, largest] = [head.getUint16(8), head.getUint16(10)]
  const { info: stream, sampleCount: frames } = readStreamInfo(new Uint8Array(head.buffer, 8))
  if (smallest !== largest || frames === 0) return undefined
  const prefix = new Uint8Array(8 + infoBytes)
  prefix.set(new Uint8Array(head.buffer, 0, 8 + 18))
  // The only metadata block; frame sizes, length and checksum are left out, because they are those of the whole file.
  prefix[4] = 0x80
  prefix.fill(0, 12, 18)
  prefix[21] = (prefix[21] ?? 0) & 0xf0
  prefix.fill(0, 22)
  return { stream, blockSize: largest, frames, prefix }
}

async function audioStartOf({ read, head, signal }: OpenFile): Promise<number> {
  for (let at = 4; ;) {
    const end = at + blockHeadBytes
    const view = new DataView(
      end <= head.byteLength ? head.slice(at, end) : (await read({ start: at, end: end - 1 }, signal)).bytes,
    )
    const word = view.getUint32(0)
    at = end + (word & 0xff_ffff)
    if (word >>> 31 === 1) return at
  }
}

class FlacSource implements PcmSource {
  readonly sampleRate: number
  readonly frames: number
  readonly #info: FlacInfo
  readonly #file: OpenFile
  /** In ascending order; the first and the last are those of the file. */
  #marks: Mark[]

  constructor(info: FlacInfo, audioStart: number, file: OpenFile) {
    this.sampleRate = info.stream.sampleRate
    this.frames = info.frames
    this.#info = info
    this.#file = file
    this.#marks = [
      { sample: 0, byte: audioStart },
      { sample: info.frames, byte: file.totalBytes },
    ]
  }

  async read(fromFrame: number, frames: number, signal: AbortSignal): Promise<Float32Array<ArrayBuffer>[]> {
    const to = Math.min(fromFrame + frames, this.frames)
    if (to <= fromFrame) return [new Float32Array(0)]
    const { blockSize, prefix } = this.#info
    const first = Math.floor(fromFrame / blockSize) * blockSize
    const last = Math.min(this.frames, Math.ceil(to / blockSize) * blockSize)
    const { bytes, marks } = await this.#frames(first, last, signal)
    const [start, end] = [marks.get(first) ?? 0, marks.get(last) ?? bytes.byteLength]
    const piece = new Uint8Array(prefix.byteLength + end - start)
    piece.set(prefix)
    piece.set(bytes.subarray(start, end), prefix.byteLength)
    const planes = await decodeAudio(piece.buffer, this.sampleRate)
    return planes.map((plane) => plane.slice(fromFrame - first, to - first))
  }

  /** Bytes that hold the frames from `first` to before `last`, and where in them the two begin. */
  async #frames(
    first: number,
    last: number,
    signal: AbortSignal,
  ): Promise<{ bytes: Uint8Array<ArrayBuffer>; marks: Map<number, number> }> {
    let [startByte, endByte] = [this.#guess(first, -marginBytes), this.#guess(last, marginBytes)]
    for (let probe = 0; probe < maxProbes; probe++) {
      const { bytes: buffer } = await this.#file.read({ start: startByte, end: endByte - 1 }, signal)
      const bytes = new Uint8Array(buffer)
      const marks = this.#find(bytes, startByte)
      if (endByte === this.#file.totalBytes) marks.set(this.frames, bytes.byteLength)
      if (marks.has(first) && marks.has(last)) return { bytes, marks }
      if (!marks.has(first)) startByte = Math.min(startByte, this.#guess(first, -marginBytes * (probe + 1)))
      if (!marks.has(last)) endByte = Math.max(endByte, this.#guess(last, marginBytes * (probe + 1)))
    }
    throw new Error('The FLAC file is damaged: a frame of it was not found.')
  }

  /** Where a sample probably is, by interpolation between the nearest known marks. */
  #guess(sample: number, margin: number): number {
    const above = this.#marks.findIndex((mark) => mark.sample >= sample)
    const [low, high] = [this.#marks[Math.max(0, above - 1)], this.#marks[above]]
    if (!low || !high) return this.#file.totalBytes
    if (high.sample === sample) {
      // Known exactly; but a frame's own header must still be within reach.
      return margin < 0 ? high.byte : Math.min(this.#file.totalBytes, high.byte + longestHeader)
    }
    const share = (sample - low.sample) / Math.max(1, high.sample - low.sample)
    const byte = Math.round(low.byte + share * (high.byte - low.byte)) + margin
    return Math.max(low.byte, Math.min(this.#file.totalBytes, byte))
  }

  /** Every frame of these bytes: its first sample to its offset. */
  #find(bytes: Uint8Array, startByte: number): Map<number, number> {
    const { blockSize, stream } = this.#info
    const found = new Map<number, number>()
    for (let at = 0; at + longestHeader <= bytes.byteLength; at++) {
      const position = readFrameHeader(bytes, at, stream)?.position
      if (!position || !('frame' in position)) continue
      const sample = position.frame * blockSize
      if (!this.#isPlausible(sample, startByte + at)) continue
      found.set(sample, at)
      this.#remember({ sample, byte: startByte + at })
    }
    return found
  }

  /** Whether it lies between the nearest known marks, in samples as well as in bytes. */
  #isPlausible(sample: number, byte: number): boolean {
    const above = this.#marks.findIndex((mark) => mark.sample >= sample)
    const [low, high] = [this.#marks[above - 1], this.#marks[above]]
    if (!high) return false
    return high.sample === sample ? high.byte === byte : low !== undefined && low.byte < byte && byte < high.byte
  }

  #remember(mark: Mark): void {
    const above = this.#marks.findIndex(({ sample }) => sample >= mark.sample)
    if (this.#marks[above]?.sample !== mark.sample) this.#marks.splice(above, 0, mark)
  }
}
