import { decodeAudio, type OpenFile, type PcmSource } from './pcm.js'
import { sampleAt } from './sample-at.js'

interface Mp3Info {
  sampleRate: number
  /** The bytes of some frames, and at most one more on either side. */
  bytesOf(first: number, end: number): { start: number; end: number }
  frameCount: number
  /** Samples before the audio: those of the encoder, and those of every decoder. */
  delay: number
  frames: number
}

const frameSamples = 1152
const decoderDelay = 529
/** A frame needs some before it: for up to 511 bytes that they left over, and for the overlap of its transform. */
const leadFrames = 3
const leadBytes = 511
/** Of a file whose frames have to be looked for. */
const scannedBytes = 2 ** 20
const bitrates = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]
const sampleRates = [44_100, 48_000, 32_000]

/**
 * An MP3 file that tells its length in its first frame, read piece by piece. With a constant bit rate (`Info`) every
 * position can be computed; with a variable one (`Xing`) all frames are looked for once.
 */
export async function openMp3(file: OpenFile): Promise<PcmSource | undefined> {
  const info = await infoOf(file)
  if (!info) return undefined
  const { sampleRate, frames, frameCount, delay } = info
  return {
    sampleRate,
    frames,
    async read(fromFrame, count, signal) {
      const to = Math.min(fromFrame + count, frames)
      if (to <= fromFrame) return [new Float32Array(0)]
      const first = Math.max(0, Math.floor((fromFrame + delay) / frameSamples) - leadFrames)
      const end = Math.min(frameCount, Math.ceil((to + delay) / frameSamples) + 1)
      const planes = await decodeAudio(await framesOf(file, info, first, end, signal), sampleRate)
      // Counted from the end: what a decoder leaves out for want of earlier frames, it leaves out at the beginning.
      const at = (planes[0]?.length ?? 0) - (end * frameSamples - (fromFrame + delay))
      return planes.map((plane) => {
        const piece = new Float32Array(to - fromFrame)
        piece.set(plane.subarray(Math.max(0, at), at + to - fromFrame), Math.max(0, -at))
        return piece
      })
    },
  }
}

// oxlint-disable-next-line complexity -- the fields of one header, in their order
async function infoOf(file: OpenFile): Promise<Mp3Info | undefined> {
  const { head, read, totalBytes, signal } = file
  const start = new DataView(head)
  if (start.byteLength < 10) return undefined
  const isTagged = start.getUint32(0) >>> 8 === 0x49_4433
  const tagBytes = isTagged ? 10 + synchsafe(start.getUint32(6)) : 0
  const isInHead = tagBytes + 1500 <= head.byteLength || head.byteLength >= totalBytes
  if (!isInHead && !isTagged) return undefined
  const view = isInHead
    ? new DataView(head, Math.min(tagBytes, head.byteLength))
    : new DataView((await read({ start: tagBytes, end: tagBytes + 1499 }, signal)).bytes)
  if (view.byteLength < 200 || view.getUint16(0) >>> 1 !== 0xfffa >>> 1) return undefined
  const bitrate = bitrates[view.getUint8(2) >> 4]
  const sampleRate = sampleRates[(view.getUint8(2) >> 2) & 3]
  if (!bitrate || !sampleRate) return undefined
  const infoAt = 4 + (view.getUint8(3) >> 6 === 3 ? 17 : 32)
  const isVariable = view.getUint32(infoAt) === 0x5869_6e67
  // With the number of frames.
  if ((!isVariable && view.getUint32(infoAt) !== 0x496e_666f) || (view.getUint32(infoAt + 4) & 1) === 0)
    return undefined
  const frameCount = view.getUint32(infoAt + 8)
  const flags = view.getUint32(infoAt + 4)
  const lameAt = infoAt + 8 + 4 + (flags & 2 ? 4 : 0) + (flags & 4 ? 100 : 0) + (flags & 8 ? 4 : 0)
  const cuts = view.getUint32(lameAt + 20) & 0xff_ffff
  const frameBytes = (144_000 * bitrate) / sampleRate
  const audioStart = tagBytes + (frameLength(view.getUint32(0)) ?? 0)
  const offsets = isVariable ? await frameOffsets(file, audioStart) : undefined
  if (offsets && offsets.length < frameCount) return undefined
  const encoderDelay = cuts >>> 12
  return {
    sampleRate,
    bytesOf(first, end) {
      if (!offsets) {
        const at = (frame: number) => audioStart + frame * frameBytes
        return { start: Math.max(audioStart, Math.floor(at(first)) - 1), end: Math.ceil(at(end)) + 1 }
      }
      let lead = first
      while (lead > 0 && sampleAt(offsets, first) - sampleAt(offsets, lead) < leadBytes) lead--
      return { start: sampleAt(offsets, lead), end: offsets[end] ?? totalBytes }
    },
    frameCount,
    delay: encoderDelay + decoderDelay,
    frames: frameCount * frameSamples - encoderDelay - (cuts & 0xfff),
  }
}

/** The frames from `first` to before `end`, beginning with a header. */
async function framesOf(
  { read, totalBytes }: OpenFile,
  { bytesOf }: Mp3Info,
  first: number,
  end: number,
  signal: AbortSignal,
): Promise<ArrayBuffer> {
  const range = bytesOf(first, end)
  const { bytes } = await read({ start: range.start, end: Math.min(totalBytes, range.end) - 1 }, signal)
  const view = new Uint8Array(bytes)
  const header = view.findIndex((byte, at) => byte === 0xff && ((view[at + 1] ?? 0) & 0xfe) === 0xfa)
  return bytes.slice(Math.max(0, header), bytes.byteLength)
}

/** Where frames begin, up to what is none: tags at the end, for example. */
async function frameOffsets({ read, totalBytes, signal }: OpenFile, audioStart: number): Promise<number[]> {
  const offsets: number[] = []
  for (let from = audioStart; from + 4 <= totalBytes;) {
    const { bytes } = await read({ start: from, end: Math.min(totalBytes, from + scannedBytes) - 1 }, signal)
    const view = new DataView(bytes)
    let at = 0
    while (at + 4 <= view.byteLength) {
      const length = frameLength(view.getUint32(at))
      if (length === undefined) return offsets
      offsets.push(from + at)
      at += length
    }
    from += at
  }
  return offsets
}

/** Bytes of a frame with this header; undefined for what is no such header. */
function frameLength(header: number): number | undefined {
  const [bitrate, sampleRate] = [bitrates[(header >>> 12) & 15], sampleRates[(header >>> 10) & 3]]
  if (header >>> 17 !== 0xfffa >>> 1 || !bitrate || !sampleRate) return undefined
  return Math.floor((144_000 * bitrate) / sampleRate) + ((header >>> 9) & 1)
}

function synchsafe(word: number): number {
  return ((word >>> 24) << 21) | (((word >>> 16) & 127) << 14) | (((word >>> 8) & 127) << 7) | (word & 127)
}
