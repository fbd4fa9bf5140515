function u16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16BE(value)
  return bytes
}

function u32(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4)
  values.forEach((value, index) => bytes.writeUInt32BE(value, index * 4))
  return bytes
}

function box(type: string, ...parts: Buffer[]): Buffer {
  const body = Buffer.concat(parts)
  return Buffer.concat([u32(body.length + 8), Buffer.from(type, 'latin1'), body])
}

/** A QuickTime movie whose sound, `count` mu-law samples, lies in another file: an alias with its absolute path. */
export function movieReferringTo(path: string, count: number): Buffer {
  const name = Buffer.from(path)
  const alias = box(
    'alis',
    u32(0),
    Buffer.alloc(10),
    Buffer.alloc(1 + 27),
    Buffer.alloc(12),
    Buffer.alloc(1 + 63),
    Buffer.alloc(16),
    Buffer.alloc(4),
    Buffer.alloc(16),
    u16(18),
    u16(name.length),
    name,
    Buffer.alloc(name.length % 2),
    Buffer.from([0xff, 0xff, 0, 0]),
  )
  const entry = box('ulaw', Buffer.alloc(6), u16(1), Buffer.alloc(8), u16(1), u16(16), u32(0), u32(8000 * 65_536))
  const table = box(
    'stbl',
    box('stsd', u32(0, 1), entry),
    box('stts', u32(0, 1, count, 1)),
    box('stsc', u32(0, 1, 1, count, 1)),
    box('stsz', u32(0, 1, count)),
    box('stco', u32(0, 1, 0)),
  )
  const information = box('minf', box('smhd', u32(0, 0)), box('dinf', box('dref', u32(0, 1), alias)), table)
  const media = box(
    'mdia',
    box('mdhd', u32(0, 0, 0, 8000, count, 0)),
    box('hdlr', u32(0), Buffer.from('mhlrsoun'), Buffer.alloc(13)),
    information,
  )
  const header = box('tkhd', u32(7, 0, 0, 1, 0, count), Buffer.alloc(60))
  const movie = box('mvhd', u32(0, 0, 0, 8000, count), Buffer.alloc(80))
  return Buffer.concat([
    box('ftyp', Buffer.from('qt  \0\0\0\0', 'latin1')),
    box('moov', movie, box('trak', header, media)),
  ])
}
