import { open, stat } from 'node:fs/promises'

/** A file with random access. Every read opens and closes it, so an abandoned stream leaks nothing. */
export interface FileBytes {
  readonly size: number
  /** Up to `length` bytes from `position`; fewer at the end of the file. */
  read(position: number, length: number): Promise<Uint8Array>
  /** Consecutive pieces of `[from, to)`. Rejects with the signal's reason once it is aborted. */
  pieces(options: { from?: number; to?: number; pieceBytes: number }): AsyncGenerator<Uint8Array, void, undefined>
  /** Fraction of the file that `pieces` has returned so far. */
  readFraction(): number
}

/** @throws the file system's own error when `path` cannot be read. */
export async function openFileBytes(path: string, signal?: AbortSignal): Promise<FileBytes> {
  const { size } = await stat(path)
  let furthest = 0

  async function read(position: number, length: number): Promise<Uint8Array> {
    signal?.throwIfAborted()
    const wanted = Math.max(0, Math.min(length, size - position))
    const bytes = new Uint8Array(wanted)
    if (wanted === 0) return bytes
    const handle = await open(path, 'r')
    try {
      let filled = 0
      while (filled < wanted) {
        const { bytesRead } = await handle.read(bytes, filled, wanted - filled, position + filled)
        if (bytesRead === 0) break
        filled += bytesRead
      }
      return filled === wanted ? bytes : bytes.subarray(0, filled)
    } finally {
      await handle.close()
    }
  }

  return {
    size,
    read,
    readFraction: () => (size === 0 ? 1 : furthest / size),
    async *pieces({ from = 0, to = size, pieceBytes }) {
      const end = Math.min(to, size)
      const ahead = (position: number) => {
        const piece = read(position, Math.min(pieceBytes, end - position))
        // Awaited later; until then a rejection must not count as unhandled.
        piece.catch(() => undefined)
        return piece
      }
      // The next piece is read while the caller processes this one.
      let next = ahead(from)
      try {
        for (let position = from; position < end;) {
          const bytes = await next
          signal?.throwIfAborted()
          if (bytes.length === 0) return
          position += bytes.length
          furthest = Math.max(furthest, position)
          next = ahead(position)
          yield bytes
        }
      } finally {
        // Afterwards nothing holds the file open.
        await next.catch(() => undefined)
      }
      furthest = Math.max(furthest, Math.min(to, size))
    },
  }
}
