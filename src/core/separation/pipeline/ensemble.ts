import type { StemBlock } from './estimation.js'
import { FloatPlanes } from '../dsp/float-planes.js'
import type { StemName, Stems } from '../stems.js'

/** Estimates of one track by one model. */
export interface EnsembleMember {
  blocks: AsyncGenerator<StemBlock, void, void>
  /** Relative weight in the mean. */
  weight: number
  /** Samples of silence before the track in this member's blocks, which are dropped. */
  delaySamples: number
}

/**
 * The weighted mean of the estimates of several members; their block sizes may differ. All members advance through the track
 * together, so memory does not grow with its length. The mixture is taken from the first member.
 */
export async function* weightedMean(
  members: readonly EnsembleMember[],
  stems: readonly StemName[],
): AsyncGenerator<StemBlock, void, void> {
  const cursors = members.map((member) => new Cursor(member))
  const sums = new Map(stems.map((stem) => [stem, new FloatPlanes()]))
  const total = members.reduce((sum, { weight }) => sum + weight, 0)
  try {
    for (;;) {
      let sampleCount = Infinity
      for (const cursor of cursors) sampleCount = Math.min(sampleCount, await cursor.available())
      if (sampleCount === 0) return
      const blocks = cursors.map((cursor) => cursor.take(sampleCount))
      const mean: Stems = {}
      for (const [stem, planes] of sums) {
        mean[stem] = planes.take(blocks[0].mixture.length, sampleCount)
        mean[stem].forEach((plane, channel) => {
          plane.fill(0)
          blocks.forEach((block, index) =>
            addScaled(plane, block.stems[stem]?.[channel], members[index].weight / total),
          )
        })
      }
      yield { sampleCount, stems: mean, mixture: blocks[0].mixture }
    }
  } finally {
    await Promise.all(members.map(({ blocks }) => blocks.return()))
  }
}

function addScaled(sum: Float32Array, values: Float32Array | undefined, weight: number): void {
  if (values === undefined) return
  for (let i = 0; i < sum.length; i++) sum[i] += weight * values[i]
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
