const blockBytes = 512

/** A ustar archive; names beyond 100 bytes get a pax record. */
export function tarFile(files: Record<string, Uint8Array>): Buffer {
  const entries = Object.entries(files).flatMap(([name, content]) => {
    if (Buffer.byteLength(name) <= 100) return [header(name, content.length, '0'), padded(content)]
    const pax = paxRecord('path', name)
    return [header('PaxHeader', pax.length, 'x'), padded(pax), header('long', content.length, '0'), padded(content)]
  })
  return Buffer.concat([...entries, Buffer.alloc(2 * blockBytes)])
}

function header(name: string, bytes: number, type: string): Buffer {
  const block = Buffer.alloc(blockBytes)
  block.write(name, 0)
  block.write('0000644\0', 100)
  block.write(`${bytes.toString(8).padStart(11, '0')}\0`, 124)
  block.write('        ', 148)
  block.write(type, 156)
  block.write('ustar\0', 257)
  block.write('00', 263)
  const sum = block.reduce((total, byte) => total + byte, 0)
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return block
}

function padded(content: Uint8Array): Buffer {
  return Buffer.concat([content, Buffer.alloc((blockBytes - (content.length % blockBytes)) % blockBytes)])
}

/** A pax record states its own length, digits included. */
function paxRecord(key: string, value: string): Buffer {
  const rest = ` ${key}=${value}\n`
  const length = Buffer.byteLength(rest)
  const digits = String(length + String(length).length).length
  return Buffer.from(`${length + digits}${rest}`)
}
