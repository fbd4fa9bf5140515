import { concat } from '../core/media/bytes.js'
import { findMpegAudio, mpegHeader } from '../core/media/decode/mpeg/frame-sync.js'
import { decoderDelay, readMp3Info } from '../core/media/decode/mpeg/mp3-info.js'
import type { Packets, PacketWindow } from './web-codec.js'

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
    const info = readMp3Info(frame)
    if (!info) return from + position
    const { frameCount = 0, isExtended, delay, padding } = info
    const length = frameCount * samplesPerFrame - delay - padding
    if (isExtended && length > 0) this.window = { start: delay + decoderDelay, length }
    // A frame without sound.
    return from + position + this.#frameBytes(frame, 0)
  }
}

function channelsOf(frame: Uint8Array): number {
  return (frame[3] ?? 0) >> 6 === 3 ? 1 : 2
}
