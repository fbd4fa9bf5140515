/** How the residuals of a block are divided into `2^order` equal parts, each with Rice codes of its own parameter. */
export interface RicePartitions {
  order: number
  parameters: number[]
  /** Bits to be expected of all, with the parameters. */
  bits: number
}

const maxOrder = 5

/**
 * The division with the fewest bits to be expected.
 *
 * @param predictorOrder how many samples at the start have no residual
 * @param foldedSum sum of the folded residuals of the samples `from` to `from + count`
 * @param maxParameter 14, or 30 with parameters of five bits
 */
export function ricePartitions(
  sampleCount: number,
  predictorOrder: number,
  maxParameter: number,
  foldedSum: (from: number, count: number) => number,
): RicePartitions {
  let order = 0
  while (order < maxOrder && sampleCount % 2 ** (order + 1) === 0 && sampleCount >> (order + 1) > predictorOrder)
    order++
  let sums = Array.from({ length: 2 ** order }, (_, index) => {
    const length = sampleCount >> order
    return index === 0 ? foldedSum(predictorOrder, length - predictorOrder) : foldedSum(index * length, length)
  })
  const parameterBits = maxParameter > 14 ? 5 : 4
  let best: RicePartitions | undefined
  for (; ; order--) {
    const parameters: number[] = []
    let bits = 0
    for (const [index, sum] of sums.entries()) {
      const count = (sampleCount >> order) - (index === 0 ? predictorOrder : 0)
      const parameter = bestParameter(sum, count, maxParameter)
      parameters.push(parameter)
      bits += parameterBits + codeBits(sum, count, parameter)
    }
    if (!best || bits < best.bits) best = { order, parameters, bits }
    if (order === 0) return best
    const halves = sums
    sums = Array.from({ length: halves.length / 2 }, (_, index) => halves[2 * index] + halves[2 * index + 1])
  }
}

function bestParameter(sum: number, count: number, maxParameter: number): number {
  if (count === 0) return 0
  const low = Math.min(31 - Math.clz32(Math.max(1, (sum / count) * Math.LN2)), maxParameter)
  const high = Math.min(low + 1, maxParameter)
  return codeBits(sum, count, high) < codeBits(sum, count, low) ? high : low
}

/** A code has the parameter's bits, and as many zeros before a one as its upper bits say. The lower ones are half of all on average. */
function codeBits(sum: number, count: number, parameter: number): number {
  const step = 1 << parameter
  return count * (1 + parameter) + Math.max(0, (sum - (count * (step - 1)) / 2) / step)
}
