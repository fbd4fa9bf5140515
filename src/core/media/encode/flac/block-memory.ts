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
  const take = (floats: number) => {
    const start = at
    at += floats
    return start
  }
  const first = take(planes * planeFloats) + doublesOf(margin)
  const window = take(doublesOf(blockSamples))
  const windowed = take(planeFloats) + doublesOf(margin)
  const sums = take(doublesOf(differenceOrders * planes))
  const autocorrelation = take(doublesOf(maxOrder + 1))
  const coefficients = take(doublesOf(maxOrder))
  const foldedSums = take(doublesOf(maxPartitions))
  const pairs = take(blockSamples)
  /** Results of the fixed and of the linear predictor. */
  const attempts = [0, 1].map(() => ({ residual: take(blockSamples + margin), partitions: take(partitionFields) }))
  const frame = take(maxFrameBytes(channels) / 4)
  return {
    plane: (index: number) => first + index * planeFloats,
    window,
    windowed,
    differenceSums: (plane: number) => sums + doublesOf(differenceOrders * plane),
    autocorrelation,
    coefficients,
    foldedSums,
    pairs,
    attempts,
    frame,
    end: at,
  }
}

export function maxFrameBytes(channels: number): number {
  // Samples of 25 bits; estimates may be too small by a part of a bit for each.
  return channels * blockSamples * 4 + 1024
}
