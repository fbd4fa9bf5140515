import { availableInAll, blockCursor } from './block-cursor.js'
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
 * Cuts the blocks of several members so that those of a step hold the same samples; their own sizes may differ. All
 * members advance through the track together, so memory does not grow with its length. Valid until the next step.
 */
export async function* alignedBlocks(members: readonly EnsembleMember[]): AsyncGenerator<StemBlock[], void, void> {
  const cursors = members.map(({ blocks, delaySamples }) =>
    blockCursor(blocks, ({ sampleCount }) => sampleCount, delaySamples),
  )
  try {
    for (;;) {
      const sampleCount = await availableInAll(cursors)
      if (sampleCount === 0) return
      yield cursors.map((cursor) =>
        cursor.take(sampleCount, ({ stems, mixture }, part) => ({
          sampleCount,
          stems: Object.fromEntries(Object.entries(stems).map(([stem, planes]) => [stem, planes.map(part)])),
          mixture: mixture.map(part),
        })),
      )
    }
  } finally {
    await Promise.all(members.map(({ blocks }) => blocks.return()))
  }
}
