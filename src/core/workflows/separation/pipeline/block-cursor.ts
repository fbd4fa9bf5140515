export type BlockCursor<Block> = ReturnType<typeof blockCursor<Block>>

/** Reads blocks of samples in pieces of any size. @param toDrop samples at the start that are left out */
export function blockCursor<Block>(blocks: AsyncIterable<Block>, lengthOf: (block: Block) => number, toDrop = 0) {
  const iterator = blocks[Symbol.asyncIterator]()
  let block: Block | undefined
  let offset = 0
  return {
    /** Samples left in the current block; 0 at the end. */
    async available(): Promise<number> {
      while (block === undefined || offset === lengthOf(block)) {
        const next = await iterator.next()
        if (next.done) return 0
        block = next.value
        offset = Math.min(toDrop, lengthOf(block))
        toDrop -= offset
      }
      return lengthOf(block) - offset
    },

    /** @param cut makes the piece from the current block; `part` cuts each of its planes */
    take<Piece>(sampleCount: number, cut: (block: Block, part: (plane: Float32Array) => Float32Array) => Piece): Piece {
      const from = offset
      offset += sampleCount
      return cut(block as Block, (plane) => plane.subarray(from, from + sampleCount))
    },
  }
}

/** Number of samples that all cursors have; 0 once one has ended. */
export async function availableInAll<Block>(cursors: readonly BlockCursor<Block>[]): Promise<number> {
  let sampleCount = Infinity
  for (const cursor of cursors) sampleCount = Math.min(sampleCount, await cursor.available())
  return sampleCount
}
