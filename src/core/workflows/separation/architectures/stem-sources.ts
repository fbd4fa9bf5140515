import type { Manifest } from '../../../models/manifest.js'
import type { StemName } from '../../../models/stems.js'

/** For each stem, the indices of the network outputs that add up to it. */
export type StemSources = ReadonlyMap<StemName, readonly number[]>

/**
 * The sources of the wanted stems, for a network whose outputs are in the manifest's order. If a model has no
 * accompaniments output, they are the sum of everything but the vocals.
 */
export function stemSources({ stems }: Manifest, wanted: readonly StemName[] = stems): StemSources {
  const sources = new Map<StemName, readonly number[]>()
  for (const stem of wanted) {
    const index = stems.indexOf(stem)
    if (index >= 0) sources.set(stem, [index])
    else if (stem === 'accompaniments' && stems.includes('vocals') && stems.length > 1) {
      sources.set(
        stem,
        [...stems.keys()].filter((each) => stems[each] !== 'vocals'),
      )
    }
  }
  if (wanted.includes('vocals') && !stems.includes('vocals') && stems.includes('accompaniments')) {
    sources.set('accompaniments', [stems.indexOf('accompaniments')])
  }
  return sources
}

/** The sum of parts of equal length. A single part is returned unchanged. */
export function sumOfParts(parts: readonly Float32Array[], scratch: Float32Array): Float32Array {
  if (parts.length === 1) return parts[0]!
  const sum = scratch.subarray(0, parts[0]!.length)
  sum.set(parts[0]!)
  for (const part of parts.slice(1)) for (let i = 0; i < sum.length; i++) sum[i]! += part[i]!
  return sum
}
