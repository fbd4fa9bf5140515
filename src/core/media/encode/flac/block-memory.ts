import { maxOrder, maxPartitions, partitionFields } from '../../dsp/kernels/flac-kernels.js'
import { planesOf } from './channel-ways.js'

/** Samples per channel of every block but the last. */
export const blockSamples = 4096

/** Differences of order 0 to 4: the residuals of the fixed predictors. */
export const differenceOrders = 5
/** Doubles before and after a plane: zeros, which the kernels read and partly write. */
export const margin = 8

/** Offsets in the kernel's memory, in floats. */
export function offsetsOf(channels: number) {
  const doublesOf = (count: number) => 2 * count
  const planeFloats = doublesOf(blockSamples + 2 * margin)
  const planes = planesOf(channels)
  let at = 0
  const take = (floats: number) => (at += floats) - floats
  const first = take(planes * planeFloats) + doublesOf(margin)
  const sums = take(doublesOf(differenceOrders * planes))
  return {
    plane: (index: number) => first + index * planeFloats,
    differenceSums: (plane: number) => sums + doublesOf(differenceOrders * plane),
    window: take(doublesOf(blockSamples)),
    windowed: take(planeFloats) + doublesOf(margin),
    autocorrelation: take(doublesOf(maxOrder + 1)),
    coefficients: take(doublesOf(maxOrder)),
    foldedSums: take(doublesOf(maxPartitions)),
    pairs: take(blockSamples),
    /** Results of the fixed and of the linear predictor. */
    attempts: [0, 1].map(() => ({ residual: take(blockSamples + margin), partitions: take(partitionFields) })),
    frame: take(maxFrameBytes(channels) / 4),
    end: at,
  }
}

export function maxFrameBytes(channels: number): number {
  // Samples of 25 bits; estimates may be too small by a part of a bit for each.
  return channels * blockSamples * 4 + 1024
}
