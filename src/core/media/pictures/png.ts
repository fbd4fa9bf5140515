import { crc32, deflateSync } from 'node:zlib'

/** A picture in one colour: how opaque each pixel is, 0 to 255, row by row from the top left. */
export interface Stencil {
  width: number
  height: number
  opacity: Uint8Array
  /** Red, green, blue, 0 to 255. */
  colour: readonly [number, number, number]
}

/**
 * A PNG file (https://www.w3.org/TR/png-3/) with a palette of one colour at all opacities, so that each pixel takes one
 * byte.
 */
export function encodePng({ width, height, opacity, colour }: Stencil): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  // 8 bits per pixel, colour type 3: palette.
  header.set([8, 3], 8)
  const palette = Buffer.alloc(256 * 3)
  for (let index = 0; index < 256; index++) palette.set(colour, index * 3)
  const opacities = Buffer.from(Array.from({ length: 256 }, (_, index) => index))
  // Each row begins with its filter type; 0 is none.
  const rows = Buffer.alloc(height * (width + 1))
  for (let row = 0; row < height; row++)
    rows.set(opacity.subarray(row * width, (row + 1) * width), row * (width + 1) + 1)
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk('IHDR', header),
    chunk('PLTE', palette),
    chunk('tRNS', opacities),
    chunk('IDAT', deflateSync(rows)),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

function chunk(type: string, body: Buffer): Buffer {
  const checked = Buffer.concat([Buffer.from(type, 'latin1'), body])
  const [length, checksum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(body.length)
  checksum.writeUInt32BE(crc32(checked))
  return Buffer.concat([length, checked, checksum])
}
