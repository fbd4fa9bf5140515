import { invalidOptions, type StemworkError } from '../../../engine/errors.js'
import type { TensorInfo } from '../../../models/session/network.js'
import type { NetworkShape } from './architecture.js'

/** The size of each axis: a number if fixed, `undefined` if the caller chooses it. */
export type AxisSizes = readonly (number | undefined)[]

export function axisSizes({ shape }: TensorInfo): AxisSizes {
  return shape.map((size) => (typeof size === 'number' ? size : undefined))
}

/** True for a float32 tensor of these sizes; `undefined` on either side matches anything. */
export function fits(tensor: TensorInfo, expected: AxisSizes): boolean {
  if (tensor.type !== 'float32' || tensor.shape.length !== expected.length) return false
  return axisSizes(tensor).every(
    (size, axis) => size === undefined || expected[axis] === undefined || size === expected[axis],
  )
}

/**
 * The tensors of one network from spectra `[batch, from, bins, frames]` to spectra `[batch, to, bins, frames]` of a
 * fixed number of bins; `undefined` for other networks.
 */
export function spectralTensors(networks: readonly NetworkShape[], from: number, to = from) {
  const { inputs, outputs } = networks[0]!
  const [input, output] = [inputs[0]!, outputs[0]!]
  const [, , bins, frameCount] = axisSizes(input)
  const isOne = networks.length === 1 && inputs.length === 1 && outputs.length === 1
  if (!isOne || !bins || !fits(input, [undefined, from, bins, frameCount])) return undefined
  return fits(output, [undefined, to, bins, frameCount]) ? { input, output, bins, frameCount } : undefined
}

/** The batch axis of a tensor, for `Architecture.batchAxis`: only if its size is free. */
export function freeAxis(tensor: TensorInfo, axis: number): number | undefined {
  return typeof tensor.shape[axis] === 'number' ? undefined : axis
}

/** @param expected what the architecture needs, in words */
export function misfit(networks: readonly NetworkShape[], expected: string): StemworkError {
  const found = networks.map(
    ({ inputs, outputs }) => `${inputs.map(tensorText).join(', ')} -> ${outputs.map(tensorText).join(', ')}`,
  )
  return invalidOptions(
    `The model does not fit its architecture: expected ${expected}; found ${found.join('; ')}. Correct the ` +
      `manifest's architecture or sizes.`,
  )
}

function tensorText({ name, type, shape }: TensorInfo): string {
  return `${name} ${type} [${shape.join(', ')}]`
}
