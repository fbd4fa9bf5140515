import { concat, latin1, viewOf } from '../core/media/bytes.js'
import { pagesIn, packetsOf } from '../core/media/decode/ogg/ogg-pages.js'
import type { Packets, PacketWindow } from './web-codec.js'

/** The packets of the whole pages that `openOgg` makes: first the headers of the stream, then its sound. */
abstract class OggPackets implements Packets {
  abstract config: AudioDecoderConfig
  window: PacketWindow = { start: 0, length: Infinity }
  #part: Uint8Array = new Uint8Array(0)
  #headers: Uint8Array[] = []

  constructor(private readonly headerCount: number) {}

  /** Reads the headers, which set the configuration and may move the window's start. */
  protected abstract configure(headers: readonly Uint8Array[]): void

  take(bytes: Uint8Array): Uint8Array[] {
    const sound: Uint8Array[] = []
    for (const page of pagesIn(bytes)) {
      const { packets, isContinued } = packetsOf(page)
      for (const [index, packet] of packets.entries()) {
        this.#part = index === 0 && page.isContinued ? concat([this.#part, packet]) : packet
        if (index < packets.length - 1 || !isContinued) this.#add(this.#part, sound)
      }
      // The end of the song may lie within its last packet.
      if (page.isLast && page.granule !== undefined)
        this.window = { ...this.window, length: Math.max(0, page.granule - this.window.start) }
    }
    return sound
  }

  #add(packet: Uint8Array, sound: Uint8Array[]): void {
    if (this.#headers.length === this.headerCount) return void sound.push(packet)
    this.#headers.push(packet)
    if (this.#headers.length < this.headerCount) return
    this.configure(this.#headers)
    if (this.config.numberOfChannels > 2) throw new Error('unsupported: more than two channels')
  }
}

/** RFC 7845: a header with the samples to leave out, and comments. */
export class OpusPackets extends OggPackets {
  config: AudioDecoderConfig = { codec: 'opus', sampleRate: 48_000, numberOfChannels: 2 }

  constructor() {
    super(2)
  }

  protected configure([head = new Uint8Array(0)]: readonly Uint8Array[]): void {
    if (latin1(head, 0, 8) !== 'OpusHead' || head.length < 19) throw new Error('the stream has no Opus header')
    this.window = { ...this.window, start: viewOf(head).getUint16(10, true) }
    // Without the header as a description, so that the browser skips no samples itself.
    this.config = { ...this.config, numberOfChannels: head[9] ?? 0 }
  }
}

/** Vorbis I, 4.2: headers for identification, comments and setup. */
export class VorbisPackets extends OggPackets {
  config: AudioDecoderConfig = { codec: 'vorbis', sampleRate: 0, numberOfChannels: 2 }

  constructor() {
    super(3)
  }

  protected configure(headers: readonly Uint8Array[]): void {
    const [head = new Uint8Array(0), comments = new Uint8Array(0)] = headers
    if (latin1(head, 1, 7) !== 'vorbis' || head.length < 30) throw new Error('the stream has no Vorbis header')
    // All three headers in one, as in Matroska: their number minus one, the lengths of the first two, and their bytes.
    const description = concat([Uint8Array.of(2), laced(head.length), laced(comments.length), ...headers])
    const sampleRate = viewOf(head).getUint32(12, true)
    this.config = { codec: 'vorbis', sampleRate, numberOfChannels: head[11] ?? 0, description }
  }
}

/** Xiph lacing: a length as the sum of bytes, of which the last is below 255. */
function laced(length: number): Uint8Array {
  const bytes = new Uint8Array(Math.floor(length / 255) + 1).fill(255)
  bytes[bytes.length - 1] = length % 255
  return bytes
}
