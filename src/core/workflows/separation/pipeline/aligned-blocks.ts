import type { StemBlock } from './estimation.js'

/** Estimates of one track by one model. */
export interface EnsembleMember {
  blocks: AsyncGenerator<StemBlock, void, void>
  /** Relative weight in the mean. */
  weight: number
  /** Samples of silence before the track in this member's blocks, which are dropped. */
  delaySamples: number
}

/**
 * The blocks of several members, cut so that those of a step are of the same samples; their own sizes may differ. All
 * members advance through the track together, so memory does not grow with its length. Valid until the next step.
 */
export async function* alignedBlocks(members: readonly EnsembleMember[]): AsyncGenerator<StemBlock[], void, void> {
  const cursors = members.map((member) => new Cursor(member))
  try {
    for (;;) {
      let sampleCount = Infinity
      for (const cursor of cursors) sampleCount = Math.min(sampleCount, await cursor.available())
      if (sampleCount === 0) return
      yield cursors.map((cursor) => cursor.take(sampleCount))
    }
  } finally {
    await Promise.all(members.map(({ blocks }) => blocks.return()))
  }
}

/** Reads a member's blocks in pieces of any size. */
class Cursor {
  readonly #blocks: EnsembleMember['blocks']
  #toDrop: number
  #block: StemBlock | undefined
  #offset = 0

  constructor({ blocks, delaySamples }: EnsembleMember) {
    this.#blocks = blocks
    this.#toDrop = delaySamples
  }

  /** Samples left in the current block; 0 at the end of the track. */
  async available(): Promise<number> {
    while (this.#block === undefined || this.#offset === this.#block.sampleCount) {
      const next = await this.#blocks.next()
      if (next.done) return 0
      this.#block = next.value
      this.#offset = Math.min(this.#toDrop, next.value.sampleCount)
      this.#toDrop -= this.#offset
    }
    return this.#block.sampleCount - this.#offset
  }

  take(sampleCount: number): StemBlock {
    const { stems, mixture } = this.#block as StemBlock
    const cut = (planes: Float32Array[]) =>
      planes.map((plane) => plane.subarray(this.#offset, this.#offset + sampleCount))
    const taken = {
      sampleCount,
      stems: Object.fromEntries(Object.entries(stems).map(([stem, planes]) => [stem, cut(planes)])),
      mixture: cut(mixture),
    }
    this.#offset += sampleCount
    return taken
  }
}
