/** Frames are gathered into pieces of this size before writing. */
const pieceBytes = 256 * 1024

/** The target of a file writer. */
export interface WritableBytes {
  /**
   * Writes the whole content.
   *
   * @param position end of the written bytes, or start of bytes to replace
   */
  write(content: Uint8Array, position: number): Promise<void>
  close(): Promise<void>
}

export type FileWriter = ReturnType<typeof fileWriter>

/**
 * Writes a file from start to end. Bytes already written can be corrected afterwards.
 *
 * @param bytes size of the file so far
 */
export function fileWriter(file: WritableBytes, bytes = 0) {
  let piece: Uint8Array | undefined
  let gathered = 0
  /** Must not be called while bytes are gathered. */
  const append = async (content: Uint8Array) => {
    await file.write(content, bytes)
    bytes += content.length
  }
  /** Writes the gathered bytes. */
  const flush = async () => {
    if (!piece) return
    const content = piece.subarray(0, gathered)
    gathered = 0
    await append(content)
  }
  return {
    append,
    flush,
    /** Size of the file, without the gathered bytes. */
    get bytes() {
      return bytes
    },
    /** Copies a frame of at most a piece, and writes the piece when the next one has no room in it. */
    async gather(frame: Uint8Array): Promise<void> {
      piece ??= new Uint8Array(pieceBytes)
      if (gathered + frame.length > pieceBytes) await flush()
      piece.set(frame, gathered)
      gathered += frame.length
    },
    /** Replaces bytes that were written before. */
    correct: (content: Uint8Array, position: number) => file.write(content, position),
    close: () => file.close(),
  }
}
