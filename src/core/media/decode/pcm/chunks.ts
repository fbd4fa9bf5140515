import { latin1, viewOf } from '../../bytes.js'
import type { ReadableBytes } from '../file-bytes.js'
import { headerCount } from '../header-count.js'

/** A part of a RIFF-like file. */
export interface Chunk {
  /** Four characters. */
  id: string
  /** Position of the content. */
  body: number
  /** Size of the content as stated; it may reach past the end of the file. */
  size: number
}

/**
 * Layouts of chunks: `riff` with little-endian sizes (WAV), `big-endian` (RIFX, AIFF), `wave64` with names of 16
 * bytes, sizes of 8 that include the header, and an alignment to 8, `caf` with big-endian sizes of 8 bytes and no
 * alignment.
 */
export type ChunkLayout = 'riff' | 'big-endian' | 'wave64' | 'caf'

const headerSizes = { riff: 8, 'big-endian': 8, wave64: 24, caf: 12 }
const alignments = { riff: 2, 'big-endian': 2, wave64: 8, caf: 1 }

/**
 * Reads the chunks from `position` on. Where the stated size is a placeholder, callers pass the real one to `next`.
 *
 * @throws StemworkError `BAD_INPUT` `decode_failed` when there are too many
 */
export async function* readChunks(
  file: ReadableBytes,
  position: number,
  layout: ChunkLayout,
): AsyncGenerator<Chunk, void, number | undefined> {
  const headerBytes = headerSizes[layout]
  const alignment = alignments[layout]
  const count = headerCount('chunks')
  while (position + headerBytes <= file.size) {
    count()
    const header = await file.read(position, headerBytes)
    if (header.length < headerBytes) return
    const size = sizeIn(viewOf(header), layout)
    if (size < 0) return
    const body = position + headerBytes
    const taken = (yield { id: latin1(header, 0, 4), body, size }) ?? size
    position = body + Math.ceil(taken / alignment) * alignment
  }
}

function sizeIn(header: DataView, layout: ChunkLayout): number {
  if (layout === 'caf') {
    const size = Number(header.getBigInt64(4))
    return size === -1 ? Infinity : size
  }
  if (layout === 'wave64') return Number(header.getBigUint64(16, true)) - 24
  return header.getUint32(4, layout === 'riff')
}
