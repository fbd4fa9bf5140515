export interface WavFileOptions {
  tag: number
  bits: number
  data: Buffer
  channels?: number
  sampleRate?: number
  isExtensible?: boolean
  channelMask?: number
  outer?: 'RIFF' | 'RF64' | 'BW64'
  /** Sizes to write in place of the true ones. */
  riffBytes?: number
  dataBytes?: number
  before?: [id: string, body: Buffer][]
  after?: [id: string, body: Buffer][]
}

/** The bytes of a WAV file, laid out manually. */
export function wavFile(options: WavFileOptions): Buffer {
  const {
    tag,
    bits,
    data,
    channels = 2,
    sampleRate = 44_100,
    isExtensible = false,
    outer = 'RIFF',
    before = [],
    after = [],
  } = options
  const format = Buffer.alloc(isExtensible ? 40 : 16)
  format.writeUInt16LE(isExtensible ? 0xfffe : tag, 0)
  format.writeUInt16LE(channels, 2)
  format.writeUInt32LE(sampleRate, 4)
  format.writeUInt32LE((sampleRate * channels * bits) / 8, 8)
  format.writeUInt16LE((channels * bits) / 8, 12)
  format.writeUInt16LE(bits, 14)
  if (isExtensible) {
    format.writeUInt16LE(22, 16)
    format.writeUInt16LE(bits, 18)
    format.writeUInt32LE(options.channelMask ?? 0, 20)
    format.writeUInt16LE(tag, 24)
    Buffer.from('000000001000800000aa00389b71', 'hex').copy(format, 26)
  }
  const isLong = outer !== 'RIFF'
  const long = Buffer.alloc(28)
  long.writeBigUInt64LE(BigInt(data.length), 8)
  const chunks = [
    ...(isLong ? [chunk('ds64', long)] : []),
    chunk('fmt ', format),
    ...before.map(([id, body]) => chunk(id, body)),
    chunk('data', data, isLong ? 0xffff_ffff : options.dataBytes),
    ...after.map(([id, body]) => chunk(id, body)),
  ]
  const body = Buffer.concat([Buffer.from('WAVE'), ...chunks])
  return Buffer.concat([chunk(outer, body, isLong ? 0xffff_ffff : options.riffBytes)])
}

function chunk(id: string, body: Buffer, bytes = body.length): Buffer {
  const head = Buffer.alloc(8, id)
  head.writeUInt32LE(bytes, 4)
  return Buffer.concat([head, body, Buffer.alloc(body.length % 2)])
}
