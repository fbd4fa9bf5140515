import { decodeAudio, type OpenFile, type PcmSource } from './pcm.js'

interface Mp3Info {
  sampleRate: number
  /** Mean length of a frame; each is at most one byte off. */
  frameBytes: number
  /** First frame of audio. */
  audioStart: number
  frameCount: number
  /** Samples before the audio: those of the encoder, and those of every decoder. */
  delay: number
  frames: number
}

const frameSamples = 1152
const decoderDelay = 529
/** A frame needs up to two before it: for their left-over bits, and for the overlap of its transform. */
const leadFrames = 3
const bitrates = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]
const sampleRates = [44_100, 48_000, 32_000]

/**
 * An MP3 file of constant bit rate that tells its length in an `Info` frame, read piece by piece: every position can be
 * computed.
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
async function infoOf({ head, read, totalBytes, signal }: OpenFile): Promise<Mp3Info | undefined> {
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
  // "Info": constant bit rate, with the number of frames.
  if (view.getUint32(infoAt) !== 0x496e_666f || (view.getUint32(infoAt + 4) & 1) === 0) return undefined
  const frameCount = view.getUint32(infoAt + 8)
  const flags = view.getUint32(infoAt + 4)
  const lameAt = infoAt + 8 + 4 + (flags & 2 ? 4 : 0) + (flags & 4 ? 100 : 0) + (flags & 8 ? 4 : 0)
  const cuts = view.getUint32(lameAt + 20) & 0xff_ffff
  const frameBytes = (144_000 * bitrate) / sampleRate
  const infoFrameBytes = Math.floor(frameBytes) + ((view.getUint8(2) >> 1) & 1)
  const encoderDelay = cuts >>> 12
  return {
    sampleRate,
    frameBytes,
    audioStart: tagBytes + infoFrameBytes,
    frameCount,
    delay: encoderDelay + decoderDelay,
    frames: frameCount * frameSamples - encoderDelay - (cuts & 0xfff),
  }
}

/** The frames from `first` to before `end`, beginning with a header. */
async function framesOf(
  { read, totalBytes }: OpenFile,
  { audioStart, frameBytes }: Mp3Info,
  first: number,
  end: number,
  signal: AbortSignal,
): Promise<ArrayBuffer> {
  const start = Math.max(audioStart, audioStart + Math.floor(first * frameBytes) - 1)
  const last = Math.min(totalBytes, audioStart + Math.ceil(end * frameBytes) + 1)
  const { bytes } = await read({ start, end: last - 1 }, signal)
  const view = new Uint8Array(bytes)
  const header = view.findIndex((byte, at) => byte === 0xff && ((view[at + 1] ?? 0) & 0xfe) === 0xfa)
  return bytes.slice(Math.max(0, header), bytes.byteLength)
}

function synchsafe(word: number): number {
  return ((word >>> 24) << 21) | (((word >>> 16) & 127) << 14) | (((word >>> 8) & 127) << 7) | (word & 127)
}
