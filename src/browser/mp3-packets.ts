import { concat, latin1, viewOf } from '../core/media/bytes.js'
import { findMpegAudio, mpegHeader } from '../core/media/decode/mpeg/frame-sync.js'
import type { Packets, PacketWindow } from './web-codec.js'

/** Samples that every decoder adds before the audio (http://gabriel.mp3-tech.org/mp3infotag.html). */
const decoderDelay = 529
/** Bytes kept while searching for a frame: several of the largest frames. */
const searchedBytes = 16 * 1024

/** The frames of an MP3 stream. Skips bytes between them. */
export class Mp3Packets implements Packets {
  config: AudioDecoderConfig = { codec: 'mp3', sampleRate: 0, numberOfChannels: 2 }
  window: PacketWindow = { start: 0, length: Infinity }
  #rest: Uint8Array = new Uint8Array(0)
  #streamId: number | undefined

  take(bytes: Uint8Array): Uint8Array[] {
    const all = concat([this.#rest, bytes])
    const frames: Uint8Array[] = []
    let at = 0
    for (;;) {
      const begin = this.#frameBytes(all, at) > 0 ? at : this.#findFrame(all, at)
      if (begin === undefined) break
      at = begin
      const end = at + this.#frameBytes(all, at)
      if (end > all.length) break
      if (end > at) frames.push(all.subarray(at, end))
      at = end
    }
    this.#rest = all.slice(Math.max(at, all.length - searchedBytes))
    return frames
  }

  /** 0 where no frame of this stream begins. */
  #frameBytes(bytes: Uint8Array, at: number): number {
    const header = mpegHeader(bytes, at)
    return header && header.streamId === this.#streamId ? header.frameBytes : 0
  }

  #findFrame(bytes: Uint8Array, from: number): number | undefined {
    const found = findMpegAudio(bytes.subarray(from))
    if (!found) return undefined
    if (found.isFreeFormat) throw new Error('unsupported: free format')
    const { position, sampleRate, samplesPerFrame } = found
    const frame = bytes.subarray(from + position)
    const isFirst = this.#streamId === undefined
    this.#streamId = mpegHeader(frame, 0)?.streamId
    if (!isFirst) return from + position
    this.config = { codec: 'mp3', sampleRate, numberOfChannels: channelsOf(frame) }
    const window = readInfo(frame, samplesPerFrame)
    if (!window) return from + position
    this.window = window
    return from + position + this.#frameBytes(frame, 0)
  }
}

function channelsOf(frame: Uint8Array): number {
  return (frame[3] ?? 0) >> 6 === 3 ? 1 : 2
}

/** Reads a first frame without sound: Xing's header, then LAME's, which states how many samples were added. */
function readInfo(frame: Uint8Array, samplesPerFrame: number): PacketWindow | undefined {
  const text = latin1(frame, 0, Math.min(200, frame.length))
  const tag = Math.max(text.indexOf('Xing'), text.indexOf('Info'))
  const view = viewOf(frame)
  if (tag < 0 || tag + 8 > view.byteLength) return undefined
  const flags = view.getUint32(tag + 4)
  // Counts of frames and bytes, the table of contents, and a quality.
  const lame = tag + 8 + (flags & 1 ? 4 : 0) + (flags & 2 ? 4 : 0) + (flags & 4 ? 100 : 0) + (flags & 8 ? 4 : 0)
  const whole = { start: 0, length: Infinity }
  if (!(flags & 1) || lame + 24 > view.byteLength || view.getUint8(lame) === 0) return whole
  const added = (view.getUint16(lame + 21) << 8) | view.getUint8(lame + 23)
  const [delay, padding] = [added >> 12, added & 0xfff]
  const samples = view.getUint32(tag + 8) * samplesPerFrame - delay - padding
  return samples > 0 ? { start: delay + decoderDelay, length: samples } : whole
}
