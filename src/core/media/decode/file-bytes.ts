/** Chains of small headers are read from a buffer of this size, not one by one. */
const windowBytes = 64 * 1024
const smallRead = 4096

export interface Range {
  position: number
  length: number
}

export interface ReadableBytes {
  readonly size: number
  /** Up to `length` bytes from `position`; fewer at the end of the file. */
  read(position: number, length: number): Promise<Uint8Array>
}

/** A file with random access. Nothing stays open between reads, so an abandoned stream leaks nothing. */
export interface FileBytes extends ReadableBytes {
  /** Consecutive pieces of `[from, to)`. Rejects with the signal's reason once it is aborted. */
  pieces(options: { from?: number; to?: number; pieceBytes: number }): AsyncGenerator<Uint8Array, void, undefined>
  /** The same for ranges of the file in any order; bytes outside them are not read. */
  ranges(ranges: Iterable<Range>): AsyncGenerator<Uint8Array, void, undefined>
  /** Fraction of the file that `pieces` or `ranges` has returned so far. */
  readFraction(): number
}

/** Reads small headers from a window, and pieces and ranges one ahead. */
export function fileBytes(source: ReadableBytes, signal?: AbortSignal): FileBytes {
  const { size } = source
  let furthest = 0
  let window: { start: number; bytes: Uint8Array } = { start: 0, bytes: new Uint8Array(0) }

  async function read(position: number, length: number): Promise<Uint8Array> {
    if (length > smallRead) return readSource(position, length)
    const end = Math.min(position + length, size)
    if (position < window.start || end > window.start + window.bytes.length)
      window = { start: position, bytes: await readSource(position, windowBytes) }
    return window.bytes.slice(position - window.start, Math.max(position, end) - window.start)
  }

  async function readSource(position: number, length: number): Promise<Uint8Array> {
    signal?.throwIfAborted()
    const wanted = Math.max(0, Math.min(length, size - position))
    return wanted === 0 ? new Uint8Array(0) : await source.read(position, wanted)
  }

  return {
    size,
    read,
    readFraction: () => (size === 0 ? 1 : furthest / size),
    pieces: ({ from = 0, to = size, pieceBytes }) =>
      follow(consecutive(from, Math.min(to, size), pieceBytes), Math.min(to, size)),
    ranges: (ranges) => follow(ranges, size),
  }

  /** Reads one range ahead: the next one is read while the caller processes this one. */
  async function* follow(ranges: Iterable<Range>, end: number): AsyncGenerator<Uint8Array, void, undefined> {
    const ahead = (range: Range | undefined) => {
      const piece = range && readSource(range.position, range.length)
      // Awaited later; until then a rejection must not count as unhandled.
      piece?.catch(() => undefined)
      return piece
    }
    const iterator = ranges[Symbol.iterator]()
    let range = iterator.next().value as Range | undefined
    let next = ahead(range)
    try {
      while (range) {
        const bytes = await next
        signal?.throwIfAborted()
        if (!bytes || bytes.length === 0) return
        furthest = Math.max(furthest, range.position + bytes.length)
        const isCutOff = bytes.length < range.length
        range = isCutOff ? undefined : (iterator.next().value as Range | undefined)
        next = ahead(range)
        yield bytes
      }
    } finally {
      // Waits for the read ahead, so that nothing holds the file open afterwards.
      await next?.catch(() => undefined)
    }
    furthest = Math.max(furthest, end)
  }
}

function* consecutive(from: number, to: number, length: number): Generator<Range, undefined> {
  for (let position = from; position < to; position += length)
    yield { position, length: Math.min(length, to - position) }
  return undefined
}
