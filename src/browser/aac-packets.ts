import { concat, latin1, viewOf } from '../core/media/bytes.js'
import { aacSetup } from '../core/media/decode/mp4/aac-setup.js'
import { type Box, findBox } from '../core/media/decode/mp4/mp4-boxes.js'
import type { Packets, PacketWindow } from './web-codec.js'

/** Packets of the single-track MP4 file that `openMp4` makes: the index in one piece, then the packets in order. */
export class AacPackets implements Packets {
  config: AudioDecoderConfig = { codec: 'mp4a', sampleRate: 0, numberOfChannels: 0 }
  /** The first packet alone gives no sound: each overlaps with the one before it. */
  window: PacketWindow = { start: 1024, length: Infinity }
  #sizes: readonly number[] | undefined
  #next = 0
  #rest: Uint8Array = new Uint8Array(0)

  take(bytes: Uint8Array): Uint8Array[] {
    if (!this.#sizes) {
      this.#readIndex(bytes)
      return []
    }
    const all = concat([this.#rest, bytes])
    const packets: Uint8Array[] = []
    let at = 0
    for (let size = this.#sizes[this.#next]; size !== undefined && at + size <= all.length;) {
      packets.push(all.subarray(at, at + size))
      at += size
      size = this.#sizes[++this.#next]
    }
    this.#rest = all.slice(at)
    return packets
  }

  #readIndex(bytes: Uint8Array): void {
    const index = need(findBox(bytes, { body: 0, end: bytes.length }, 'moov'), 'moov')
    const track = need(findBox(bytes, index, 'trak'), 'trak')
    const tables = need(findBox(bytes, track, 'mdia', 'minf', 'stbl'), 'stbl')
    const sizes = need(findBox(bytes, tables, 'stsz'), 'stsz').body + 12
    const view = viewOf(bytes)
    this.#sizes = Array.from({ length: view.getUint32(sizes - 4) }, (_, at) => view.getUint32(sizes + 4 * at))
    this.config = configOf(bytes, need(findBox(bytes, tables, 'stsd'), 'stsd'))
    this.window = windowOf(bytes, index, track, this.config.sampleRate) ?? this.window
  }
}

function need(box: Box | undefined, type: string): Box {
  if (box) return box
  throw new Error(`the index has no ${type}`)
}

/** Decoder configuration from the sample description (ISO/IEC 14496-3, 1.6.2.1). */
function configOf(bytes: Uint8Array, description: Box): AudioDecoderConfig {
  const codec = latin1(bytes, description.body + 12, description.body + 16)
  if (codec !== 'mp4a') throw new Error(`unsupported: ${codec.trim()}`)
  const specific = aacSetup(bytes).slice()
  const [first = 0, second = 0] = specific
  const rate = sampleRates[((first & 7) << 1) | (second >> 7)]
  const channels = (second >> 3) & 15
  if (rate === undefined || channels === 0) throw new Error('unsupported: AAC with a rate or channels of its own')
  return { codec: `mp4a.40.${first >> 3}`, sampleRate: rate, numberOfChannels: channels, description: specific }
}

const sampleRates = [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8000]

/** From the edit list, if it has one media edit (ISO/IEC 14496-12, 8.6.6), or from iTunes' gapless note (iTunSMPB). */
function windowOf(bytes: Uint8Array, index: Box, track: Box, sampleRate: number): PacketWindow | undefined {
  const media = timesOf(bytes, findBox(bytes, track, 'mdia', 'mdhd'))
  const movie = timesOf(bytes, findBox(bytes, index, 'mvhd'))
  const list = findBox(bytes, track, 'edts', 'elst')
  const edits = list && media ? editsOf(bytes, list).filter(({ mediaTime }) => mediaTime >= 0) : []
  const [edit] = edits
  if (edits.length > 1) return undefined
  if (edit && media) {
    const start = edit.mediaTime / media.scale
    const left = media.duration > 0 ? media.duration / media.scale - start : Infinity
    // The edit's length is rounded down to ticks of the movie's clock, which is often the coarser one.
    const tick = movie && movie.scale < media.scale ? 1 : 0
    const length = movie && edit.duration > 0 ? Math.min(left, (edit.duration + tick) / movie.scale) : left
    return { start: Math.round(start * sampleRate), length: Math.round(length * sampleRate) }
  }
  const note = / [0-9A-F]{8} ([0-9A-F]{8}) [0-9A-F]{8} ([0-9A-F]{16})/.exec(latin1(bytes, index.body, index.end))
  if (!note) return undefined
  return { start: parseInt(note[1] ?? '', 16), length: parseInt(note[2] ?? '', 16) || Infinity }
}

/** Ticks in a second, and the length in ticks. */
function timesOf(bytes: Uint8Array, header: Box | undefined): { scale: number; duration: number } | undefined {
  if (!header || header.end - header.body < 20) return undefined
  const view = viewOf(bytes)
  if (view.getUint8(header.body) !== 1)
    return { scale: view.getUint32(header.body + 12), duration: view.getUint32(header.body + 16) }
  return { scale: view.getUint32(header.body + 20), duration: Number(view.getBigUint64(header.body + 24)) }
}

function editsOf(bytes: Uint8Array, list: Box): { duration: number; mediaTime: number }[] {
  const view = viewOf(bytes)
  const isLong = view.getUint8(list.body) === 1
  const count = Math.min(view.getUint32(list.body + 4), Math.floor((list.end - list.body - 8) / (isLong ? 20 : 12)))
  return Array.from({ length: count }, (_, index) => {
    const at = list.body + 8 + index * (isLong ? 20 : 12)
    return isLong
      ? { duration: Number(view.getBigUint64(at)), mediaTime: Number(view.getBigInt64(at + 8)) }
      : { duration: view.getUint32(at), mediaTime: view.getInt32(at + 4) }
  })
}
