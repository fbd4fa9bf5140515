/** How the residuals of a block are divided into `2^order` equal parts, each with Rice codes of its own parameter. */
export interface RicePartitions {
  order: number
  parameters: number[]
  /** Bits to be expected of all, with the parameters. */
  bits: number
}

/** Parts of a block, at most. */
export const maxPartitions = 32

/** Into how many parts a block may be divided, each time by two: the first holds what has no residual, and a residual. */
export function mostPartitions(sampleCount: number, predictorOrder: number): number {
  let parts = 1
  while (parts < maxPartitions && sampleCount % (2 * parts) === 0 && sampleCount / (2 * parts) > predictorOrder)
    parts *= 2
  return parts
}

/**
 * The division with the fewest bits to be expected.
 *
 * @param sums of the folded residuals of `mostPartitions`; they are overwritten
 * @param predictorOrder how many samples at the start have no residual
 * @param maxParameter 14, or 30 with parameters of five bits
 */
export function ricePartitions(
  sums: Float64Array,
  sampleCount: number,
  predictorOrder: number,
  maxParameter: number,
): RicePartitions {
  const parameterBits = maxParameter > 14 ? 5 : 4
  let best: RicePartitions | undefined
  for (let order = Math.log2(sums.length); ; order--) {
    const parts = 2 ** order
    const parameters: number[] = []
    let bits = parts * parameterBits
    for (let part = 0; part < parts; part++) {
      const count = (sampleCount >> order) - (part === 0 ? predictorOrder : 0)
      const parameter = bestParameter(sums[part], count, maxParameter)
      parameters.push(parameter)
      bits += codeBits(sums[part], count, parameter)
    }
    if (!best || bits < best.bits) best = { order, parameters, bits }
    if (order === 0) return best
    for (let part = 0; part < parts / 2; part++) sums[part] = sums[2 * part] + sums[2 * part + 1]
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
