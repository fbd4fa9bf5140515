/** Part of a track: `samples[0]` is the track's sample `start`. */
export interface TrackPart {
  samples: Float32Array
  start: number
}

/**
 * Samples `from` to `to` of a track, mirrored at its ends ("reflect" padding: sample -i is sample i, sample n - 1 + i
 * of n is sample n - 1 - i), zero beyond that. Returns a view of the part if nothing has to be padded, else a copy in
 * `scratch`.
 *
 * @param trackSamples length of the track, or `undefined` while its end is beyond `to`.
 */
export function reflectedSlice(
  part: TrackPart,
  from: number,
  to: number,
  trackSamples: number | undefined,
  scratch: Float32Array,
): Float32Array {
  const { samples, start } = part
  const end = trackSamples ?? Infinity
  if (from >= 0 && to <= end) return samples.subarray(from - start, to - start)
  const out = scratch.subarray(0, to - from)
  const innerFrom = Math.min(Math.max(from, 0), to)
  const innerTo = Math.max(Math.min(to, end), innerFrom)
  out.set(samples.subarray(innerFrom - start, innerTo - start), innerFrom - from)
  const mirrored = (position: number): number => {
    const once = position < 0 ? -position : position
    const twice = once >= end ? 2 * end - 2 - once : once
    return twice < 0 ? 0 : samples[twice - start]!
  }
  for (let position = from; position < innerFrom; position++) out[position - from] = mirrored(position)
  for (let position = innerTo; position < to; position++) out[position - from] = mirrored(position)
  return out
}
