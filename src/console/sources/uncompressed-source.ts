import { decodePcm, type PcmEncoding } from '../../core/media/decode/pcm/pcm.js'
import { type PcmSource, pcmSource, type RangeReader } from './pcm.js'

/** Position and encoding of the samples in an uncompressed file. */
export interface SampleLayout {
  sampleRate: number
  channelCount: number
  encoding: PcmEncoding
  dataStart: number
  frames: number
}

/** Bytes of one sample of all channels. */
export function frameBytes({ encoding, channelCount }: Pick<SampleLayout, 'encoding' | 'channelCount'>): number {
  return encoding.bytes * channelCount
}

type Samples = Omit<SampleLayout, 'dataStart' | 'frames'>

/** Undefined for anything but a WAV or AIFF file of the service's formats. */
export function sampleLayout(head: DataView): SampleLayout | undefined {
  const form = head.byteLength < 12 ? '' : tagAt(head, 0) + tagAt(head, 8)
  const isLittleEndian = /^(RIFF|RF64)WAVE$/.test(form)
  if (!isLittleEndian && !/^FORMAIF[FC]$/.test(form)) return undefined
  let longDataBytes = 0
  let samples: Samples | undefined
  for (let at = 12; at + 8 <= head.byteLength;) {
    const [id, size, body] = [tagAt(head, at), head.getUint32(at + 4, isLittleEndian), at + 8]
    if (id === 'ds64') longDataBytes = Number(head.getBigUint64(body + 8, true))
    if (id === 'fmt ') samples = wavSamples(head, body)
    if (id === 'COMM') samples = aiffSamples(head, body, size)
    if (id === 'data' || id === 'SSND') {
      // In AIFF, two numbers lie before the samples; the service leaves them 0.
      const before = isLittleEndian ? 0 : 8
      const dataBytes = isLittleEndian && size === 0xffff_ffff ? longDataBytes : size - before
      return samples && { ...samples, dataStart: body + before, frames: Math.floor(dataBytes / frameBytes(samples)) }
    }
    at = body + size + (size % 2)
  }
  return undefined
}

/** Reads exactly the samples that are asked for. */
export function uncompressedSource(readRange: RangeReader, layout: SampleLayout): PcmSource {
  const bytesPerFrame = frameBytes(layout)
  const byteOf = (frame: number) => layout.dataStart + frame * bytesPerFrame
  return pcmSource(layout, async (from, to, signal) => {
    const { bytes } = await readRange({ start: byteOf(from), end: byteOf(to) - 1 }, signal)
    return decodePcm(new Uint8Array(bytes), layout.encoding, layout.channelCount).slice(0, 2)
  })
}

function tagAt(head: DataView, at: number): string {
  return String.fromCharCode(...new Uint8Array(head.buffer, head.byteOffset + at, 4))
}

/** Encodings by format tag or compression, and bits. */
const encodings: Record<string, Omit<PcmEncoding, 'littleEndian'> | undefined> = {
  '1/16': { kind: 'signed', bytes: 2 },
  '1/24': { kind: 'signed', bytes: 3 },
  '3/32': { kind: 'float', bytes: 4 },
  'NONE/16': { kind: 'signed', bytes: 2 },
  'NONE/24': { kind: 'signed', bytes: 3 },
  'fl32/32': { kind: 'float', bytes: 4 },
}

function wavSamples(head: DataView, body: number): Samples | undefined {
  const encoding = encodings[`${head.getUint16(body, true)}/${head.getUint16(body + 14, true)}`]
  const [channelCount, sampleRate] = [head.getUint16(body + 2, true), head.getUint32(body + 4, true)]
  return encoding && { channelCount, sampleRate, encoding: { ...encoding, littleEndian: true } }
}

function aiffSamples(head: DataView, body: number, size: number): Samples | undefined {
  const encoding = encodings[`${size < 22 ? 'NONE' : tagAt(head, body + 18)}/${head.getUint16(body + 6)}`]
  // An 80-bit float, of which the upper 32 bits of the mantissa suffice.
  const sampleRate = head.getUint32(body + 10) * 2 ** (head.getUint16(body + 8) - 16_414)
  return encoding && { channelCount: head.getUint16(body), sampleRate, encoding: { ...encoding, littleEndian: false } }
}
