/** An AIFF file of integers, one array per channel. */
export function aiffFile(channels: number[][], bits: number, sampleRate: number): Buffer {
  const sampleCount = channels[0]!.length
  const common = Buffer.alloc(18)
  common.writeUInt16BE(channels.length, 0)
  common.writeUInt32BE(sampleCount, 2)
  common.writeUInt16BE(bits, 6)
  // The rate as an 80-bit float: exponent, then the mantissa with its leading one.
  const exponent = Math.floor(Math.log2(sampleRate))
  common.writeUInt16BE(16_383 + exponent, 8)
  common.writeUInt32BE(sampleRate * 2 ** (31 - exponent), 10)
  const sound = Buffer.alloc(8 + (sampleCount * channels.length * bits) / 8)
  for (let i = 0, at = 8; i < sampleCount; i++)
    for (const plane of channels) at = sound.writeIntBE(plane[i]!, at, bits / 8)
  const chunk = (id: string, body: Buffer) => {
    const head = Buffer.alloc(8, id)
    head.writeUInt32BE(body.length, 4)
    return Buffer.concat([head, body])
  }
  return chunk('FORM', Buffer.concat([Buffer.from('AIFF'), chunk('COMM', common), chunk('SSND', sound)]))
}

/** A 16-bit FLAC file at 44.1 kHz with verbatim samples, and the offsets of its frames. */
export function flacFile(channels: Int16Array[], blockSize: number): { bytes: Buffer; frameStarts: number[] } {
  const sampleCount = channels[0]!.length
  const info = Buffer.alloc(34)
  info.writeUInt16BE(blockSize, 0)
  info.writeUInt16BE(blockSize, 2)
  info.writeBigUInt64BE(
    (44_100n << 44n) | (BigInt(channels.length - 1) << 41n) | (15n << 36n) | BigInt(sampleCount),
    10,
  )
  const parts = [Buffer.from('fLaC'), Buffer.from([0x80, 0, 0, 34]), info]
  const frameStarts: number[] = []
  let position = 42
  for (let from = 0, number = 0; from < sampleCount; from += blockSize, number++) {
    const planes = channels.map((plane) => plane.subarray(from, from + blockSize))
    const size = planes[0]!.length - 1
    const head = Buffer.from([
      0xff,
      0xf8,
      0x79,
      ((channels.length - 1) << 4) | 0x08,
      ...codedNumber(number),
      size >> 8,
      size & 255,
    ])
    const body = planes.map((plane) => {
      const subframe = Buffer.alloc(1 + plane.length * 2, 0x02)
      plane.forEach((sample, index) => subframe.writeInt16BE(sample, 1 + index * 2))
      return subframe
    })
    const checked = Buffer.concat([head, Buffer.from([checksum(head, 8, 0x07)]), ...body])
    const sum = checksum(checked, 16, 0x8005)
    parts.push(checked, Buffer.from([sum >> 8, sum & 255]))
    frameStarts.push(position)
    position += checked.length + 2
  }
  return { bytes: Buffer.concat(parts), frameStarts }
}

function codedNumber(value: number): number[] {
  if (value < 0x80) return [value]
  if (value < 0x800) return [0xc0 | (value >> 6), 0x80 | (value & 63)]
  return [0xe0 | (value >> 12), 0x80 | ((value >> 6) & 63), 0x80 | (value & 63)]
}

/** Computed bit by bit, unlike the tables that it checks. */
function checksum(bytes: Uint8Array, width: number, polynomial: number): number {
  let register = 0
  for (const byte of bytes) {
    for (let bit = 7; bit >= 0; bit--) {
      const isSet = ((register >> (width - 1)) ^ (byte >> bit)) & 1
      register = ((register << 1) & (2 ** width - 1)) ^ (isSet ? polynomial : 0)
    }
  }
  return register
}
