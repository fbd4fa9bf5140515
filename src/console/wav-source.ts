import type { PcmSource, RangeReader } from './pcm.js'

export interface WavFormat {
  sampleRate: number
  channelCount: number
  encoding: '16' | '24' | '32f'
  dataStart: number
  frames: number
}

/** Bytes of one sample of all channels. */
export function wavFrameBytes({ encoding, channelCount }: Pick<WavFormat, 'encoding' | 'channelCount'>): number {
  return bytesPerSample[encoding] * channelCount
}

const bytesPerSample = { '16': 2, '24': 3, '32f': 4 }

/** By format tag and bits. */
const encodings: Record<string, WavFormat['encoding'] | undefined> = { '1/16': '16', '1/24': '24', '3/32': '32f' }

/** Undefined for what is no WAV file of the service's formats. */
export function wavFormat(head: DataView): WavFormat | undefined {
  const tag = (at: number) => String.fromCharCode(...new Uint8Array(head.buffer, head.byteOffset + at, 4))
  if (head.byteLength < 12 || !['RIFF', 'RF64'].includes(tag(0)) || tag(8) !== 'WAVE') return undefined
  let longDataBytes: number | undefined
  let format: { sampleRate: number; channelCount: number; encoding: WavFormat['encoding'] } | undefined
  for (let at = 12; at + 8 <= head.byteLength;) {
    const [id, size, body] = [tag(at), head.getUint32(at + 4, true), at + 8]
    if (id === 'ds64') longDataBytes = Number(head.getBigUint64(body + 8, true))
    if (id === 'fmt ') {
      const encoding = encodings[`${head.getUint16(body, true)}/${head.getUint16(body + 14, true)}`]
      if (!encoding) return undefined
      format = { channelCount: head.getUint16(body + 2, true), sampleRate: head.getUint32(body + 4, true), encoding }
    }
    if (id === 'data' && format) {
      const dataBytes = size === 0xffff_ffff ? (longDataBytes ?? 0) : size
      return {
        ...format,
        dataStart: body,
        frames: Math.floor(dataBytes / wavFrameBytes(format)),
      }
    }
    at = body + size + (size % 2)
  }
  return undefined
}

/** Reads exactly the samples that are asked for. */
export function wavSource(readRange: RangeReader, format: WavFormat): PcmSource {
  const frameBytes = wavFrameBytes(format)
  return {
    sampleRate: format.sampleRate,
    frames: format.frames,
    async read(fromFrame, frames, signal) {
      const count = Math.min(frames, format.frames - fromFrame)
      if (count <= 0) return [new Float32Array(0)]
      const start = format.dataStart + fromFrame * frameBytes
      const { bytes } = await readRange({ start, end: start + count * frameBytes - 1 }, signal)
      return decodeFrames(new DataView(bytes), format)
    },
  }
}

function decodeFrames(bytes: DataView, { channelCount, encoding }: WavFormat): Float32Array<ArrayBuffer>[] {
  const width = bytesPerSample[encoding]
  const frames = Math.floor(bytes.byteLength / (width * channelCount))
  const sample = {
    '16': (at: number) => bytes.getInt16(at, true) / 32_768,
    '24': (at: number) => ((bytes.getUint8(at) << 8) | (bytes.getInt16(at + 1, true) << 16)) / 2_147_483_648,
    '32f': (at: number) => bytes.getFloat32(at, true),
  }[encoding]
  return Array.from({ length: Math.min(2, channelCount) }, (_, channel) => {
    const plane = new Float32Array(frames)
    for (let frame = 0; frame < frames; frame++) plane[frame] = sample((frame * channelCount + channel) * width)
    return plane
  })
}
