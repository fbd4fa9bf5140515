const blockBytes = 512

interface TarHeader {
  name: string
  bytes: number
  type: string
}

/**
 * The chunks of one file of a tar archive (ustar, with pax and GNU long names), read as the archive streams by.
 *
 * @param isWanted tells by its path in the archive
 * @throws RangeError when the archive is damaged or does not have the file
 */
export async function* tarMember(
  archive: AsyncIterable<Uint8Array>,
  isWanted: (path: string) => boolean,
): AsyncGenerator<Uint8Array, void, void> {
  const reader = new BlockReader(archive)
  let longName: string | undefined
  for (;;) {
    const block = await reader.take(blockBytes)
    if (block === undefined || block.every((byte) => byte === 0))
      throw new RangeError('the archive does not have the file')
    const header = headerOf(block)
    const padding = (blockBytes - (header.bytes % blockBytes)) % blockBytes
    if (header.type === 'x' || header.type === 'L') {
      const text = await textOf(reader, header.bytes)
      longName = header.type === 'L' ? text.replace(/\0.*$/s, '') : (paxPath(text) ?? longName)
      await reader.skip(padding)
      continue
    }
    const isFile = header.type === '0' || header.type === '\0'
    if (isFile && isWanted(longName ?? header.name)) return yield* reader.pieces(header.bytes)
    await reader.skip(header.bytes + padding)
    longName = undefined
  }
}

function headerOf(block: Uint8Array): TarHeader {
  const text = Buffer.from(block.buffer, block.byteOffset, block.length).toString('latin1')
  const field = (start: number, length: number) =>
    Buffer.from(text.slice(start, start + length).replace(/\0.*$/s, ''), 'latin1').toString()
  const prefix = text.startsWith('ustar', 257) ? field(345, 155) : ''
  // The checksum counts its own eight bytes as spaces.
  const sum = block.reduce((total, byte, index) => total + (index >= 148 && index < 156 ? 32 : byte), 0)
  if (sum !== parseInt(field(148, 8).trim(), 8)) throw new RangeError('the archive is damaged')
  return {
    name: prefix ? `${prefix}/${field(0, 100)}` : field(0, 100),
    bytes: sizeOf(block, field(124, 12)),
    type: text.charAt(156),
  }
}

/** Octal digits, or from 8 GiB on GNU's binary number, marked by the first bit. */
function sizeOf(block: Uint8Array, octal: string): number {
  if (((block[124] ?? 0) & 0x80) === 0) return parseInt(octal.trim() || '0', 8)
  return block.subarray(125, 136).reduce((size, byte) => size * 256 + byte, 0)
}

/** Pax records are `<length> <key>=<value>\n`. */
function paxPath(records: string): string | undefined {
  return /(?:^|\n)\d+ path=([^\n]*)\n/.exec(records)?.[1]
}

const maxTextBytes = 1_000_000

async function textOf(reader: BlockReader, bytes: number): Promise<string> {
  const text = bytes <= maxTextBytes ? await reader.take(bytes) : undefined
  if (text === undefined) throw new RangeError('the archive is damaged')
  return Buffer.from(text).toString()
}

/** Cuts a stream of chunks anew. */
class BlockReader {
  readonly #chunks: AsyncIterator<Uint8Array>
  #rest: Uint8Array = new Uint8Array(0)

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]()
  }

  /** So many bytes at once; undefined at the end of the stream. */
  async take(bytes: number): Promise<Uint8Array | undefined> {
    const taken = new Uint8Array(bytes)
    let filled = 0
    while (filled < bytes) {
      const piece = await this.#next(bytes - filled)
      if (piece === undefined && filled === 0) return undefined
      if (piece === undefined) throw new RangeError('the archive ends too early')
      taken.set(piece, filled)
      filled += piece.length
    }
    return taken
  }

  async *pieces(bytes: number): AsyncGenerator<Uint8Array, void, void> {
    for (let left = bytes; left > 0;) {
      const piece = await this.#next(left)
      if (piece === undefined) throw new RangeError('the archive ends too early')
      left -= piece.length
      yield piece
    }
  }

  async skip(bytes: number): Promise<void> {
    for (const pieces = this.pieces(bytes); !(await pieces.next()).done;);
  }

  async #next(most: number): Promise<Uint8Array | undefined> {
    while (this.#rest.length === 0) {
      const { value, done } = await this.#chunks.next()
      if (done) return undefined
      this.#rest = value
    }
    const piece = this.#rest.subarray(0, most)
    this.#rest = this.#rest.subarray(piece.length)
    return piece
  }
}
