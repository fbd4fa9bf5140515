import type { FloatPool } from '../../../media/dsp/float-pool.js'
import type { NetworkRun } from '../architectures/architecture.js'
import type { Tensor } from '../../../models/session/network.js'

/** The runs of several segments, joined along one axis of their tensors and split again afterwards. */
export interface RunBatch {
  /** The joined runs: one for every run of a segment. */
  runs: NetworkRun[]
  /** @returns by segment, then run: the runs that were joined, with the results of `done` */
  split(done: NetworkRun[]): NetworkRun[][]
}

/** @param parts by segment, then run; the runs of a single segment are used unchanged */
export function joinRuns(parts: NetworkRun[][], axis: number | undefined, pool: FloatPool): RunBatch {
  if (parts.length === 1 || axis === undefined) return { runs: parts[0]!, split: (done) => [done] }
  const empty = (tensors: Tensor[]): Tensor => {
    const dims = tensors[0]!.dims.map((dim, index) =>
      index === axis ? tensors.reduce((sum, tensor) => sum + tensor.dims[axis]!, 0) : dim,
    )
    return { dims, data: pool.take(dims.reduce((product, dim) => product * dim, 1)) }
  }
  const join = (tensors: Tensor[]) => {
    const joined = empty(tensors)
    eachSlice(tensors, axis, (tensor, own, at, length) => joined.data.set(tensor.data.subarray(own, own + length), at))
    return joined
  }
  const runs = parts[0]!.map(({ network }, index): NetworkRun => {
    const members = parts.map((part) => part[index]!)
    return {
      network,
      feeds: byName(
        members.map(({ feeds }) => feeds),
        join,
      ),
      fetches: byName(
        members.map(({ fetches }) => fetches),
        empty,
      ),
    }
  })
  const split = (done: NetworkRun[]) => {
    done.forEach(({ feeds, fetches }, index) => {
      for (const [name, { data }] of Object.entries(fetches)) {
        const tensors = parts.map((part) => part[index]!.fetches[name]!)
        eachSlice(tensors, axis, (tensor, own, at, length) => tensor.data.set(data.subarray(at, at + length), own))
      }
      for (const { data } of [...Object.values(feeds), ...Object.values(fetches)]) pool.give(data)
    })
    return parts
  }
  return { runs, split }
}

function byName(runs: Record<string, Tensor>[], join: (tensors: Tensor[]) => Tensor): Record<string, Tensor> {
  return Object.fromEntries(Object.keys(runs[0]!).map((name) => [name, join(runs.map((tensors) => tensors[name]!))]))
}

/**
 * Visits the contiguous slices of tensors that are joined along an axis, with their offsets in their own data and in
 * the joined data.
 */
function eachSlice(
  tensors: Tensor[],
  axis: number,
  visit: (tensor: Tensor, own: number, at: number, length: number) => void,
): void {
  const stretch = ({ dims }: Tensor) => dims.slice(axis).reduce((product, dim) => product * dim, 1)
  const outer = tensors[0]!.dims.slice(0, axis).reduce((product, dim) => product * dim, 1)
  let at = 0
  for (let row = 0; row < outer; row++) {
    for (const tensor of tensors) {
      const length = stretch(tensor)
      visit(tensor, row * length, at, length)
      at += length
    }
  }
}
