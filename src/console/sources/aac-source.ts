import { AacPackets } from '../../browser/aac-packets.js'
import { latin1 } from '../../core/media/bytes.js'
import { fileBytes } from '../../core/media/decode/file-bytes.js'
import { openMp4 } from '../../core/media/decode/mp4/mp4-stream.js'
import { decodedPiece } from './decoded-piece.js'
import { decodeAudio, type OpenFile, type PcmSource, pcmSource } from './pcm.js'
import { sampleAt } from './sample-at.js'

/** Samples of an AAC packet, at the rate that its configuration states. */
const packetSamples = 1024
/** Each packet overlaps with the previous one, and a decoder that doubles the rate also looks back. */
const leadPackets = 3
const headerBytes = 7
const windowBytes = 2 ** 20
const firstBoxes = ['ftyp', 'moov', 'mdat', 'wide', 'free', 'skip']

interface Packets {
  file: OpenFile
  /** Where packet `n` of the file begins, and how long it is. */
  positions: Float64Array
  sizes: readonly number[]
  /** The header of an empty packet. */
  header: Uint8Array
}

/**
 * Opens the AAC sound of an MP4 file, wherever its index is. The packets of a piece become a stream with a header
 * before each (ADTS), which browsers decode as a separate file.
 */
export async function openAac(file: OpenFile): Promise<PcmSource | undefined> {
  const { head, read, totalBytes, signal } = file
  if (!firstBoxes.includes(latin1(new Uint8Array(head), 4, 8))) return undefined
  // A fragmented file has thousands of small headers.
  let window = { start: 0, bytes: new Uint8Array(head) }
  const bytes = {
    size: totalBytes,
    async read(position: number, length: number) {
      const isInWindow = position >= window.start && position + length <= window.start + window.bytes.length
      if (!isInWindow) {
        const end = Math.min(totalBytes, position + Math.max(length, windowBytes))
        window = {
          start: position,
          bytes: new Uint8Array((await read({ start: position, end: end - 1 }, signal)).bytes),
        }
      }
      return window.bytes.slice(position - window.start, position - window.start + length)
    },
  }
  // A file that is damaged, or has another codec, may still be decoded as a whole.
  const sound = await openMp4(fileBytes(bytes, signal), packetSamples).catch(() => undefined)
  const index = await sound?.pieces.next()
  const config = sound && index && !index.done && configOf(index.value)
  if (!config) return undefined
  return source(
    { file, positions: positionsOf(sound.samples), sizes: sound.samples.sizes, header: config.header },
    config,
  )
}

interface Config {
  sampleRate: number
  /** Samples that the encoder put before the song. */
  start: number
  length: number
  /** The header of an empty packet. */
  header: Uint8Array
}

function configOf(index: Uint8Array): Config | undefined {
  const packets = new AacPackets()
  try {
    packets.take(index)
  } catch {
    return undefined
  }
  const { config, window } = packets
  const [first = 0, second = 0] = config.description as Uint8Array
  const type = first >> 3
  // For HE-AAC, which builds on "low complexity", the header states the latter; decoders detect the rest.
  const profile = type === 5 || type === 29 ? 1 : type - 1
  if (profile > 3) return undefined
  const rate = ((first & 7) << 1) | (second >> 7)
  const channels = (second >> 3) & 15
  const header = Uint8Array.of(0xff, 0xf1, (profile << 6) | (rate << 2) | (channels >> 2), channels << 6, 0, 0x1f, 0xfc)
  return { sampleRate: config.sampleRate, header, ...window }
}

interface Samples {
  /** Bytes of whole packets. */
  runs: readonly { position: number; length: number }[]
  sizes: readonly number[]
}

function positionsOf({ runs, sizes }: Samples): Float64Array {
  const positions = new Float64Array(sizes.length)
  let index = 0
  for (const { position, length } of runs) {
    for (let at = position; at < position + length; at += sampleAt(sizes, index++)) positions[index] = at
  }
  return positions
}

function source(packets: Packets, config: Config): PcmSource {
  // Half of a usual rate may be that of HE-AAC, whose decoder doubles it; doubling any other does no harm.
  const scale = config.sampleRate <= 24_000 ? 2 : 1
  const sampleRate = config.sampleRate * scale
  const [packetFrames, start] = [packetSamples * scale, config.start * scale]
  const count = packets.sizes.length
  const frames = Math.min(config.length * scale, count * packetFrames - start)
  return pcmSource({ sampleRate, frames }, async (fromFrame, toFrame, signal) => {
    const [from, to] = [fromFrame + start, toFrame + start]
    const first = Math.max(0, Math.floor(from / packetFrames) - leadPackets)
    const end = Math.min(count, Math.ceil(to / packetFrames) + 1)
    const decoded = await decodeAudio(await streamOf(packets, first, end, signal), sampleRate)
    return decodedPiece(decoded, end * packetFrames - from, to - from)
  })
}

/** The packets from `first` to before `end`, each after its header. */
async function streamOf(packets: Packets, first: number, end: number, signal: AbortSignal): Promise<ArrayBuffer> {
  const { file, positions, sizes, header } = packets
  const parts: BlobPart[] = []
  for (let next = first; next < end;) {
    const start = sampleAt(positions, next)
    let past = start
    const begin = next
    // Adjacent packets are read at once; in a video, pictures lie between them.
    while (next < end && positions[next] === past) past += sampleAt(sizes, next++)
    const { bytes } = await file.read({ start, end: past - 1 }, signal)
    for (let packet = begin; packet < next; packet++) {
      const at = sampleAt(positions, packet) - start
      const size = sampleAt(sizes, packet)
      parts.push(headerOf(header, size), new Uint8Array(bytes, at, size))
    }
  }
  return new Blob(parts).arrayBuffer()
}

function headerOf(empty: Uint8Array, size: number): Uint8Array<ArrayBuffer> {
  const header = Uint8Array.from(empty)
  const length = size + headerBytes
  header[3] = (header[3] ?? 0) | (length >> 11)
  header[4] = length >> 3
  header[5] = ((length & 7) << 5) | 0x1f
  return header
}
