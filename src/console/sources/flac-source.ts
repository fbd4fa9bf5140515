import { concat } from '../../core/media/bytes.js'
import {
  type FlacStreamInfo,
  longestHeader,
  readFrameHeader,
  readStreamInfo,
} from '../../core/media/decode/flac/flac-frame.js'
import { decodeAudio, type OpenFile, type PcmSource, pcmSource } from './pcm.js'

interface Flac {
  file: OpenFile
  stream: FlacStreamInfo
  /** Samples per channel of every frame but the last. */
  blockSize: number
  frames: number
  /** Signature and stream information, which turn any run of frames into a separate file. */
  prefix: Uint8Array<ArrayBuffer>
  /** In ascending order; the first and the last are those of the file. */
  marks: Mark[]
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
/** Bytes to read around a guessed position. */
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
  const { blockSize, frames, prefix, stream } = info
  const { sampleRate } = stream
  const marks = [
    { sample: 0, byte: await audioStartOf(file) },
    { sample: frames, byte: file.totalBytes },
  ]
  const flac = { file, ...info, marks }
  return pcmSource({ sampleRate, frames }, async (from, to, signal) => {
    const first = Math.floor(from / blockSize) * blockSize
    const last = Math.min(frames, Math.ceil(to / blockSize) * blockSize)
    const { bytes, found } = await framesOf(flac, first, last, signal)
    const run = bytes.subarray(found.get(first), found.get(last))
    const planes = await decodeAudio(concat([prefix, run]).buffer, sampleRate)
    return planes.map((plane) => plane.slice(from - first, to - first))
  })
}

function infoOf(head: DataView): Omit<Flac, 'file' | 'marks'> | undefined {
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

/** Bytes that hold the frames from `first` to before `last`, and the offsets of both. */
async function framesOf(
  flac: Flac,
  first: number,
  last: number,
  signal: AbortSignal,
): Promise<{ bytes: Uint8Array<ArrayBuffer>; found: Map<number, number> }> {
  const { file, frames } = flac
  let [startByte, endByte] = [guess(flac, first, -marginBytes), guess(flac, last, marginBytes)]
  for (let probe = 0; probe < maxProbes; probe++) {
    const bytes = new Uint8Array((await file.read({ start: startByte, end: endByte - 1 }, signal)).bytes)
    const found = find(flac, bytes, startByte)
    if (endByte === file.totalBytes) found.set(frames, bytes.byteLength)
    if (found.has(first) && found.has(last)) return { bytes, found }
    if (!found.has(first)) startByte = Math.min(startByte, guess(flac, first, -marginBytes * (probe + 1)))
    if (!found.has(last)) endByte = Math.max(endByte, guess(flac, last, marginBytes * (probe + 1)))
  }
  throw new Error('The FLAC file is damaged: a frame of it was not found.')
}

/** Probable byte of a sample, by interpolation between the nearest known marks. */
function guess({ file, marks }: Flac, sample: number, margin: number): number {
  const above = marks.findIndex((mark) => mark.sample >= sample)
  const [low, high] = [marks[Math.max(0, above - 1)], marks[above]]
  if (!low || !high) return file.totalBytes
  if (high.sample === sample) {
    // Known exactly; but a frame's own header must still be within reach.
    return margin < 0 ? high.byte : Math.min(file.totalBytes, high.byte + longestHeader)
  }
  const share = (sample - low.sample) / Math.max(1, high.sample - low.sample)
  const byte = Math.round(low.byte + share * (high.byte - low.byte)) + margin
  return Math.max(low.byte, Math.min(file.totalBytes, byte))
}

/** Finds every frame in these bytes: its first sample to its offset. */
function find({ blockSize, stream, marks }: Flac, bytes: Uint8Array, startByte: number): Map<number, number> {
  const found = new Map<number, number>()
  for (let at = 0; at + longestHeader <= bytes.byteLength; at++) {
    const position = readFrameHeader(bytes, at, stream)?.position
    if (!position || !('frame' in position)) continue
    const mark = { sample: position.frame * blockSize, byte: startByte + at }
    if (take(marks, mark)) found.set(mark.sample, at)
  }
  return found
}

/** Adds a mark if it lies between its neighbours, in samples as well as in bytes; false if it does not. */
function take(marks: Mark[], { sample, byte }: Mark): boolean {
  const above = marks.findIndex((mark) => mark.sample >= sample)
  const [low, high] = [marks[above - 1], marks[above]]
  if (!high || high.sample === sample) return high?.byte === byte
  if (!low || byte <= low.byte || byte >= high.byte) return false
  marks.splice(above, 0, { sample, byte })
  return true
}
